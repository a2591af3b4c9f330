"""Would decoding and augmenting on the GPU take the load off the host?"""

from gpuledger.advice.rule import Case, Effort, Gain, Limits, Reason, advise, python
from gpuledger.advice.signs import nvidia, waits_for_input
from gpuledger.units import Unknown

# DALI's own buffers need a part of the card.
_FULL_RATIO = 0.90

CHANGE = python("""
from nvidia.dali import fn, pipeline_def, types
from nvidia.dali.plugin.pytorch import DALIGenericIterator


@pipeline_def(batch_size=256, num_threads=8, device_id=0)
def images(root):
    encoded, labels = fn.readers.file(file_root=root, random_shuffle=True, name="reader")
    # "mixed" decodes on the GPU: only the compressed image crosses PCIe.
    pixels = fn.decoders.image_random_crop(encoded, device="mixed", output_type=types.RGB)
    pixels = fn.resize(pixels, resize_x=224, resize_y=224)
    pixels = fn.crop_mirror_normalize(
        pixels,
        dtype=types.FLOAT16,
        mean=[123.7, 116.3, 103.5],
        std=[58.4, 57.1, 57.4],
        mirror=fn.random.coin_flip(),
    )
    return pixels, labels


pipeline = images("/data/train")
loader = DALIGenericIterator([pipeline], ["image", "label"], reader_name="reader")
""")
SOURCE = (
    "20 to 40 % faster with a binary format and DALI: Importance of Data Loading Pipeline in Training Deep Neural "
    "Networks (a paper on arxiv.org); high end as for num-workers"
)
GAIN = Gain("speedup", "published", SOURCE, (1.2, 1.4, 2.5))


@advise("dali", "Decode and augment on the GPU: NVIDIA DALI", "throughput", Effort("medium", 16), CHANGE, GAIN)
def when(case: Case, limits: Limits) -> Reason | None:
    """A training job on an NVIDIA GPU that waits for its input and has memory left for the decoder."""
    sign, memory = waits_for_input(case, limits), case.demand.memory_mean_ratio
    if not sign or not nvidia(case):
        return None
    if not isinstance(memory, Unknown) and memory > _FULL_RATIO:
        return None
    return Reason(f"{sign}; where images, video or sound are decoded on the host, DALI moves that to the GPU")
