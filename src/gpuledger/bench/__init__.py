"""How is a service put under load?

plan        what is asked, how often, by how many; load: the shape of requests
runner      workers that start together, on one host (crew) or through Ray (ray_crew); worker, messages: their side
targets     what is asked: an endpoint, a function, a local model
records     what a request leaves; results, writing: the file of them; loadgen: that of another tool
summary     the first figures of a run; telemetry, machine: what ran it
"""
