"""Which servers can be asked for telemetry, and how?

address       which argument is the address of a server
web           requests that wait, try again and say plainly what went wrong
prometheus    the Prometheus API, also of Thanos, Mimir, VictoriaMetrics and Grafana Cloud
"""
