"""Is every name and number in a user's mapping file checked, with the file, the key and the nearest name?"""

from __future__ import annotations

import pyarrow as pa
import pytest

from gpuledger.errors import FactError, FileFault, UnknownName
from gpuledger.lake.importing import import_files
from gpuledger.lake.layout import Lake
from gpuledger.telemetry import schema
from gpuledger.telemetry.convert import _PARSERS, convert
from gpuledger.telemetry.mapping import bind, given, load_mapping
from gpuledger.telemetry.mapping.rules import PARSE_KINDS
from gpuledger.telemetry.measures import every_unit, factor_of, units_of
from gpuledger.telemetry.stamps import StampReader

TIME_AND_GPU = '[time]\nsources = "t"\n[labels]\ngpu_uuid = "card"\n'
WATTS = '[[values]]\ncolumn = "power_w"\nsources = ["watts"]\n'


@pytest.fixture
def write(tmp_path):
    """Write a mapping file and give its path."""

    def made(text: str, name: str = "own.toml") -> str:
        (tmp_path / name).write_text(text)
        return str(tmp_path / name)

    return made


def run(mapping: str, columns: dict[str, list], **said):
    bound = bind("f.csv", list(columns), load_mapping(mapping), given(**said))
    batch = pa.RecordBatch.from_pydict(columns)
    return convert(batch, bound, StampReader(bound.mapping.time.formats, unit=bound.mapping.time.unit))


@pytest.mark.parametrize(
    ("text", "key", "words"),
    [
        ("detct = []\n" + TIME_AND_GPU, "detct", "did you mean detect"),
        (TIME_AND_GPU.replace("sources", "source"), "time.source", "did you mean sources"),
        (TIME_AND_GPU + WATTS.replace("sources", "sourcs"), "values[1].sourcs", "did you mean sources"),
        (TIME_AND_GPU + '[wide]\npatern = "gpu{gpu_index}_{reading}"', "wide.patern", "did you mean pattern"),
        (TIME_AND_GPU.replace("gpu_uuid", "gpu_uid"), "labels.gpu_uid", "nearest: gpu_uuid"),
        (TIME_AND_GPU + 'power_w = "watts"\n', "labels.power_w", "it is a reading"),
        (TIME_AND_GPU + 'at_ms = "watts"\n', "labels.at_ms", "[time]"),
        (TIME_AND_GPU + WATTS.replace("power_w", "power"), "values[1].column", "power_w"),
        (TIME_AND_GPU + WATTS.replace("power_w", "host"), "values[1].column", "[labels]"),
        (TIME_AND_GPU + WATTS.replace("power_w", "at_ms"), "values[1].column", "no schema column"),
        (TIME_AND_GPU + WATTS + WATTS.replace('["watts"]', "[]"), "values[2].sources", "names no column"),
        (TIME_AND_GPU + WATTS + "divide = 0\n", "values[1].divide", "other than 0"),
        (TIME_AND_GPU + WATTS + "multiply = inf\n", "values[1].multiply", "not a factor"),
        (TIME_AND_GPU + WATTS + 'unit = "MiB"\n', "values[1].unit", "mW"),
        (TIME_AND_GPU + WATTS + 'unit = "mw"\n', "values[1].unit", "cannot be read in 'mw'"),
        (TIME_AND_GPU + WATTS + 'unit = "mW"\ndivide = 1000\n', "values[1].unit", "remove multiply and divide"),
        (TIME_AND_GPU + WATTS + 'parse = "mig_profil"\n', "values[1].parse", "nearest: mig_profile"),
        (TIME_AND_GPU + WATTS + 'parse = "mig_profile"\n', "values[1].parse", "slice_ratio"),
        (TIME_AND_GPU + '[constants]\npower_limit_w = "700 GB"', "constants.power_limit_w", "kW"),
        (TIME_AND_GPU + "[constants]\npower_limit_w = 9999999", "constants.power_limit_w", "outside 0 to 5000 W"),
        (TIME_AND_GPU + '[constants]\npower_limit_w = "a lot"', "constants.power_limit_w", "not a number with a unit"),
        (TIME_AND_GPU + "[constants]\nenergy_mj = 5", "constants.energy_mj", "counter"),
        (TIME_AND_GPU + '[constants]\nhots = "a"', "constants.hots", "nearest: host"),
        (TIME_AND_GPU + '[constants]\ntime = "2026-01-20"', "constants.time", "--at TIME"),
        ('asks = ["hots"]\n' + TIME_AND_GPU, "asks", "nearest: host"),
        (TIME_AND_GPU.replace('"t"', '"t"\nunit = "sec"'), "time.unit", "s, ms, us, ns"),
        (TIME_AND_GPU.replace('"t"', '"t"\nformats = "%H:%M"'), "time.formats", "join"),
        (TIME_AND_GPU.replace('"t"', '"t"\nformats = "%Q"'), "time.formats", "strptime"),
        (TIME_AND_GPU.replace('sources = "t"', 'join = "t"'), "time.join", "sources"),
        (TIME_AND_GPU + '[wide]\npattern = "gpu{gpu_indx}_{reading}"', "wide.pattern", "nearest: gpu_index"),
        (TIME_AND_GPU + '[wide]\npattern = "gpu{gpu_index}_power"', "wide.pattern", "lacks {reading}"),
        (TIME_AND_GPU + '[wide]\npattern = "gpu_{reading}"', "wide.pattern", "names no GPU"),
        (TIME_AND_GPU + '[wide]\npattern = "{host}{gpu_index}.{reading}"', "wide.pattern", "without text between"),
        (TIME_AND_GPU + '[wide]\npattern = "{host}.{host}.{reading}"', "wide.pattern", "stands twice"),
        (TIME_AND_GPU + '[wide]\npattern = "g}pu{gpu_index}_{reading}"', "wide.pattern", "brace"),
        ('includes = "dcgn"\n' + TIME_AND_GPU, "includes", "did you mean dcgm"),
        ('includes = "own.toml"\n' + TIME_AND_GPU, "includes", "own.toml -> own.toml"),
        ('labels = "x"\n', "labels", "object"),
        ("values = 3\n", "values", "array"),
        ('[constants]\nhost = ["a"]\n', "constants", "str"),
    ],
)
def test_what_is_wrong_is_named_with_its_key(write, text, key, words):
    path = write(text)
    with pytest.raises(FactError) as caught:
        load_mapping(path)
    said = str(caught.value)
    assert said.startswith(f"{path}: ")
    assert key in said
    assert words in said


def test_a_map_of_a_few_lines_is_enough(write):
    made = run(write(TIME_AND_GPU + WATTS), {"t": [1_768_867_260], "card": ["GPU-1"], "watts": ["150.5"]})
    assert made.table.select(["at_ms", "gpu_uuid", "power_w"]).to_pylist() == [
        {"at_ms": 1_768_867_260_000, "gpu_uuid": "GPU-1", "power_w": 150.5}
    ]


def test_constants_fill_cells_that_are_empty(write):
    constants = '[constants]\nhost = "node-1"\ngpu_index = 3\npower_limit_w = "0.7 kW"\ngpu_temp_c = 50\nxid = 0\n'
    limit = '[[values]]\ncolumn = "power_limit_w"\nsources = "limit"\n'
    columns = {"t": [1_768_867_260] * 2, "watts": ["1", "2"], "limit": ["", "600"]}
    made = run(write('[time]\nsources = "t"\n' + constants + WATTS + limit), columns)
    assert made.table["gpu_uuid"].to_pylist() == ["node-1:gpu3"] * 2
    assert made.table["power_limit_w"].to_pylist() == [700, 600]
    assert made.table["gpu_temp_c"].to_pylist() == [50, 50]
    assert made.table["xid"].to_pylist() == [0, 0]
    assert made.table.schema.field("xid").type == schema.columns()["xid"].arrow()


def test_a_constant_device_alone(write):
    made = run(
        write('[time]\nsources = "t"\n[constants]\ngpu_uuid = "GPU-1"\n' + WATTS), {"t": [1_768_867_260], "watts": [9]}
    )
    assert made.table["gpu_uuid"].to_pylist() == ["GPU-1"]


def test_the_first_of_two_rules_for_a_reading_counts_also_over_an_included_one(write):
    path = write('includes = "dcgm"\n' + TIME_AND_GPU + WATTS)
    columns = {"t": [1_768_867_260], "card": ["GPU-1"], "watts": ["150"], "DCGM_FI_DEV_POWER_USAGE": ["99"]}
    assert run(path, columns).table["power_w"].to_pylist() == [150]
    del columns["watts"]
    assert run(path, columns).table["power_w"].to_pylist() == [99]


def test_files_may_include_files_but_not_in_a_circle(write):
    write('includes = "dcgm"\n[[values]]\ncolumn = "gpu_temp_c"\nsources = "heat"\n', "b.toml")
    path = write('includes = "b.toml"\n' + TIME_AND_GPU + WATTS, "a.toml")
    columns = {"t": [1_768_867_260], "card": ["G"], "heat": ["60"], "DCGM_FI_DEV_GPU_UTIL": ["N/A"]}
    (row,) = run(path, columns).table.to_pylist()
    assert (row["gpu_temp_c"], row["gpu_util_ratio"]) == (60, None)
    write('includes = "a.toml"\n', "b.toml")
    with pytest.raises(FactError, match=r"a\.toml -> b\.toml -> a\.toml"):
        load_mapping(path)


@pytest.mark.parametrize("name", ["dcgn", "no/such.toml", "", "x" * 5000, "a\0b"])
def test_no_such_map(name):
    with pytest.raises((UnknownName, FileFault)):
        load_mapping(name)


def test_a_folder_is_not_a_map(tmp_path):
    with pytest.raises(FileFault, match="folder"):
        load_mapping(str(tmp_path))


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (["t", "crad", "watts"], ["'gpu_uuid'", "card", "nearest in the file: 'crad'", "own.toml"]),
        (["tme", "card", "watts"], ["'time'", "own.toml"]),
        (["time", "gpu_uuid", "watts"], ["'time'", "'gpu_uuid'"]),
        (["t", "card", "wats"], ["not one reading", "'watts' (nearest in the file: 'wats')", "--explain"]),
    ],
)
def test_a_file_that_lacks_what_the_map_names(write, columns, words):
    with pytest.raises(FileFault) as caught:
        bind("f.csv", columns, load_mapping(write(TIME_AND_GPU + WATTS)))
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_a_map_without_readings_is_refused(write):
    with pytest.raises(FileFault, match="names no reading"):
        bind("f.csv", ["t", "card"], load_mapping(write(TIME_AND_GPU)))


def test_an_optional_column_that_is_missing_is_noted(write, tmp_path):
    path = write(TIME_AND_GPU + 'host = ["box"]\n' + WATTS + '[[values]]\ncolumn = "gpu_temp_c"\nsources = ["heet"]\n')
    (tmp_path / "f.csv").write_text("t,card,watts,heat\n1768867260,G,1,50\n")
    notes = import_files(Lake(tmp_path / "lake"), [tmp_path / "f.csv"], mapping=load_mapping(path)).notes
    assert "f.csv: the map reads gpu_temp_c from 'heet', which the file lacks; nearest in the file: 'heat'" in notes
    assert "f.csv: the map reads host from 'box', which the file lacks" in notes


def test_a_bit_mask_in_hexadecimal(write):
    path = write(TIME_AND_GPU + '[[values]]\ncolumn = "throttle_bits"\nsources = "reasons"\nparse = "hex"\n')
    cells = ["0x0000000000000004", "0X80", "", "Active", "0xffffffffffffffff"]
    made = run(path, {"t": [1_768_867_260] * 5, "card": ["G"] * 5, "reasons": cells})
    assert made.table["throttle_bits"].to_pylist() == [4, 128, None]
    assert [(f.row, f.reason) for f in made.faults] == [(3, "not_a_number"), (4, "not_a_number")]


def test_every_kind_of_parse_has_its_parser():
    assert set(PARSE_KINDS) == set(_PARSERS)


def test_units_are_known_and_lead_to_the_schema():
    for column in schema.readings():
        for unit in units_of(column):
            assert unit in every_unit()
            assert factor_of(unit, column) is not None
        own = schema.columns()[column].unit
        if own in units_of(column):
            assert factor_of(own, column).of(7) == 7


def test_two_rules_for_one_reading_are_refused_where_the_file_has_both_columns(write):
    other = WATTS.replace("watts", "milliwatts") + "divide = 1000\n"
    both = write(TIME_AND_GPU + WATTS + other)
    with pytest.raises(FileFault, match="fills power_w from 'watts' and from 'milliwatts'") as raised:
        run(both, {"t": [1768900000000], "card": ["a"], "watts": [300.0], "milliwatts": [300000.0]})
    assert "[[values]]" in raised.value.hint
    for name, value in (("watts", 300.0), ("milliwatts", 300000.0)):
        made = run(both, {"t": [1768900000000], "card": ["a"], name: [value]})
        assert made.table["power_w"].to_pylist() == [300.0]
