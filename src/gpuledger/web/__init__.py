"""The dashboard: pages, a JSON API and metrics of one lake, served by one process.

The server answers; a process of its own makes what it sends.

app        the routes; desk: what is made already; events: news for every viewer; guard: who may look
contract   what passes between the two processes
maker      the process; live_lake: the statements of the lake as it grows; views: what is on each page
pages      which documents the pages show; shell: the frame around them

    gpuledger serve --lake gpuledger-data
"""
