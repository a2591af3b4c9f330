"""How is a service put under load?

plan        what is sent, how often, by how many nodes; load: the shape of requests
runner      workers that start together; crew: on one host, ray_crew: on a cluster; worker, client: their side
targets/    what is benchmarked: an endpoint, a function, a local model; http_stream: the connection
records     what a request leaves; record_fields, results: the file of them; loadgen: logs of MLPerf LoadGen
summary     the main figures of a run; telemetry: a recording of its GPUs
"""
