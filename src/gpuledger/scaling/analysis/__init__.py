"""What does one run say, figure by figure?

counting     planned, answered, failed, lost; the wall clock; throughput
latency      distributions with intervals, cold requests apart
nodes        each node, and which of them is apart from the others
tokens       tokens by wall clock
baseline     efficiency against a measured baseline
alike        whether two runs are sizes of one thing
curve        the scalability law over several sizes, and what it predicts
batches      throughput by batch size, and its knee
memory       memory in use against the real card
telemetry    what the GPUs did meanwhile
money        dollars and joules for a million tokens
settings     which model, and how requests came
factors      what shapes the result: length of answers, the memory's bandwidth
"""
