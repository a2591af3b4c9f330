"""What other systems take from a lake: metrics, rules, a dashboard, OpenTelemetry and FOCUS rows.

exposition   the text format of Prometheus
figures      the figures of a window, one family of series each
traffic      memory and bytes moved by each device
metrics      those figures as a /metrics page
rules        recording and alerting rules on them
grafana      a dashboard on them
otel         hw.gpu.* metrics sent to an OpenTelemetry collector
focus/       cost and waste as rows of the FinOps Open Cost and Usage Specification
alerts/      rules on a growing lake, and messages that arrive whatever is killed in between
"""
