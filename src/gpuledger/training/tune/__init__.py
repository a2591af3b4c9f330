"""Which settings make this training job fastest end to end, and is its loss still the same?

settings     one way to run the loop (precision, loader, batch, compile, optimizer, ...), also as Python
choices      what there is to try, read from data/tune.toml, and what a machine cannot do
duel         is B really faster than A, and is it still the same training
trials       a setting on trial, the outcome of those tried, and which are worth trying again
ladder       in what order settings are tried, kept, refused and tried again
torch_trial  one setting at work in torch: batches, windows, loss curve, peak memory
machine      the device the trials run on
tuner        the climb, its figures, its cost and payback, and the JSON
"""
