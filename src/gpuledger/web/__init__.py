"""The dashboard: pages, a JSON API and metrics of one lake, served by one process.

live_lake  the statements of the lake as it grows: made once for all viewers, made again when samples come
guard      who may look: a token, host names, headers
pages      which documents the pages show
app        the routes, and the events that tell a page to look again

    gpuledger serve --lake gpuledger-data
"""
