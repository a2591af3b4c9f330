"""How do metric series (a name, labels, points in time) become rows of one device at one instant?

exporters   which metric of which exporter fills which column, in what unit
labels      whose labels are these: the workload's, or those of the exporter that was scraped
points      series and their points, as they are read
pivot       from series to rows
text        lines of an exposition page, of OpenMetrics text and of a TSDB dump
"""
