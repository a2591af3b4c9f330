"""What does one run show, figure by figure?

counting     planned, answered, failed, lost; the wall clock; throughput and tokens; model and load of the run
latency      distributions with intervals; cold starts apart
nodes        each node, and which of them differ from the others
curve        efficiency against a comparable baseline, and the scalability law over several sizes
telemetry    what the GPUs did, memory in use against the real card, dollars and joules; throughput by batch size
"""
