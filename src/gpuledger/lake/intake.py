"""How does data get into a lake from Python?"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from gpuledger.arguments import check, is_path, takes
from gpuledger.errors import InputError
from gpuledger.lake.engines.choosing import engine_named, on_its_engine
from gpuledger.lake.importing import ImportResult, import_files
from gpuledger.lake.jobs.adding import JobsResult, add_jobs
from gpuledger.lake.layout import Lake
from gpuledger.times import Instant, Length, instant_ms, length_ms

File = str | Path


class Intake:
    """A lake that takes data in."""

    @takes()
    def __init__(self, root: File, engine: str | None = None) -> None:
        """`engine`: where work runs: local, ray or ray://HOST:PORT; by default as GPULEDGER_ENGINE says."""
        check("root", "file", root)
        if engine is not None:
            check("engine", "text", engine)
            engine_named(engine)  # a wrong name is refused here; a cluster is connected when there is work
        self.lake, self.engine = Lake(root), engine

    @takes(tz="text", mapping="file", host="text", gpu_model="text")
    @on_its_engine
    def ingest(
        self,
        *data: Any,
        tz: str = "UTC",
        mapping: File | None = None,
        at: Instant | None = None,
        every: Length | None = None,
        host: str | None = None,
        gpu_model: str | None = None,
    ) -> ImportResult:
        """Import telemetry: files, folders, globs, addresses, lists of them, pandas data frames or Arrow tables; or
        what a Prometheus holds (prometheus://HOST:PORT, by itself; `pull` takes its times and credentials).

        `at`, `every`, `host`, `gpu_model`: what the files do not say themselves.
        """
        from gpuledger.telemetry.mapping import given, load_mapping
        from gpuledger.telemetry.servers.address import is_server

        said = given(at=at, every=every, host=host, gpu_model=gpu_model)
        if len(data) == 1 and is_server(data[0]):
            return self.pull(data[0], host=host, gpu_model=gpu_model)
        with tempfile.TemporaryDirectory() as folder:
            files = [file for item in data for file in given_files(item, Path(folder))]
            return import_files(
                self.lake, files, zone=tz, mapping=load_mapping(str(mapping)) if mapping else None, given=said
            )

    @takes(user="text", bearer_file="file", ca="file", host="text", password_file="file", gpu_model="text")  # noqa: S106
    @on_its_engine
    def pull(
        self,
        address: str,
        *,
        since: Instant | None = None,
        until: Instant | None = None,
        step: Length | None = None,
        delay: Length = "2m",
        headers: Mapping[str, str] | None = None,
        user: str = "",
        password_file: File | None = None,
        bearer_file: File | None = None,
        ca: File | None = None,
        host: str | None = None,
        gpu_model: str | None = None,
    ) -> ImportResult:
        """Import what a Prometheus holds of GPUs: prometheus://HOST:PORT/PATH, or prometheus+https://.

        It goes on where the last import of that server stopped; `since`: where the first one starts (7 days back).
        """
        from gpuledger.lake.pulling import pull
        from gpuledger.telemetry.mapping import given
        from gpuledger.telemetry.servers.address import api_root
        from gpuledger.telemetry.servers.prometheus import Prometheus
        from gpuledger.telemetry.servers.web import Access, Web

        check("address", "text", address)
        files = [Path(f) if f else None for f in (password_file, bearer_file, ca)]
        web = Web(api_root(address), Access(headers or {}, user, *files))
        return pull(
            self.lake,
            Prometheus(web, None if step is None else length_ms(step)),
            since_ms=None if since is None else instant_ms(since),
            until_ms=None if until is None else instant_ms(until),
            delay_ms=length_ms(delay),
            given=given(host=host, gpu_model=gpu_model),
        )

    @takes(tz="text")
    def jobs(self, *files: File, tz: str | None = None, taken: Instant | None = None) -> JobsResult:
        """Add job tables: sacct's output, pods as kubectl writes them, or any CSV of who held which GPU when.

        `tz`: the zone of times without one. `taken`: when kubectl printed the one list of pods among them. Owners apply
        from the next statement on.
        """
        paths = [path for item in files for path in given_files(item, Path())]
        return add_jobs(self.lake, paths, zone=tz, taken=taken)


def given_files(item: Any, folder: Path) -> Iterable[str | Path]:
    """The files, folders, patterns and addresses of one argument; tables in memory are written as Parquet first."""
    if is_path(item):
        return [item if isinstance(item, str) else Path(item)]
    if hasattr(item, "to_parquet"):
        target = folder / f"table-{id(item)}.parquet"
        item.to_parquet(target)
        return [target]
    if hasattr(item, "schema") and hasattr(item, "num_rows"):
        import pyarrow.parquet as pq

        target = folder / f"table-{id(item)}.parquet"
        pq.write_table(item, target)
        return [target]
    if not isinstance(item, Iterable) or isinstance(item, str | bytes):
        hint = "give a path, a folder, a glob, an address, a list of them, a pandas data frame or an Arrow table"
        raise InputError(f"{item!r} is not telemetry", hint=hint)
    return [file for inner in item for file in given_files(inner, folder)]
