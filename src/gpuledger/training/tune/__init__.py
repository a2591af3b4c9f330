"""Which settings make this training job fastest end to end, and is its loss still the same?

settings  one way to run the loop: precision, loader, batch, compile, optimizer, memory format, logging
choices   what there is to try, read from data/tune.toml, and what a machine cannot do
duel      is B really faster than A? interleaved windows, an interval, an early end
parity    is it still the same training? two loss curves side by side
turns     two settings where there is room for one
ladder    in what order are settings tried, kept, refused and tried again
grid      every setting there is, measured: what the ladder is judged by
statement the outcome: the steps, the gain, what it cost and when it has paid for itself
trial     one setting at work in torch: windows, loss curve, peak memory
feed      batches on their way: an endless loader and the copy to the device
machine   the device the trials run on
tuner     the climb and its figures
encode    the outcome as JSON
snippet   the winning settings as Python
"""
