"""Which facts do statements rest on? Every figure is in a data file with its source and date, checked whole on load.

files        one fact, how a TOML or JSON file becomes a checked struct, which entry a name means
gpus/        what each GPU can do at most, by exact key, name or alias; how it is cut into MIG slices
models/      what models are made of and how many parameters that is; the shape a config.json describes
prices/      what the clouds offer, what a GPU-hour costs there, and the user's own rates
thresholds   limits of classes, phases, targets and the truly-idle rule
data/        gpus/*.toml (one file per GPU or family), models/*.toml (one file per family), prices/, and smaller tables
"""
