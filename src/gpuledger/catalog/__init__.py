"""Which facts do the books stand on? Every figure is a data file with its source and date, checked whole on load.

files.py          one fact, and how a TOML file becomes a checked struct
gpu_facts.py      what one GPU can do: peaks by precision, SMs, power, memory, link
gpus.py           all GPUs, and which one a name means: by exact key, name or alias, never by a part of one
architectures.py  how fully an active tensor pipe issues, where somebody measured it
thresholds.py     the documented limits of classes, phases, targets and the truly-idle rule
offers.py         what the clouds offer, and which GPU they mean by the name they sell under
prices.py         what a GPU-hour costs: in an instance and region, or as the market's median
model_shapes.py   what a model is made of: layers, heads, experts, convolutions
model_params.py   how many parameters a shape has, part by part
models.py         all models, and which one a name means
model_configs.py  the shape a Hugging Face config.json describes
config_fields.py  one field of such a file, checked
data/             gpus/*.toml (one file a GPU), models/*.toml (one file a family), architectures.toml, thresholds.toml,
                  accelerator_aliases.toml, prices/
"""
