"""How do the job tables of schedulers get into the lake, and which GPU time do they explain?"""

from __future__ import annotations

from pathlib import Path

import click

from gpuledger.cli.options import PATH, lake_option, screen_options
from gpuledger.cli.screen import Screen

FOUND_PROBLEMS = 1


@click.command("jobs")
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=PATH)
@lake_option
@click.option("--tz", "zone", help="Time zone of timestamps without one; required where a table has such times.")
@click.option("--taken", metavar="TIME", help="When kubectl printed the one list of pods among the files.")
@click.option("--fail-on", type=click.Choice(["rejects"]), help="Exit 1 if any row was rejected.")
@screen_options
def command(
    screen: Screen, files: tuple[Path, ...], lake_dir: Path, zone: str | None, taken: str | None, fail_on: str | None
) -> int:
    """Add job tables: GPU time gets its job, user and account.

    Reads the output of sacct (--parsable2), of kubectl get pods -o json, and any CSV or JSON table with the columns
    job, user, team, account, namespace, host, gpu, start, end, as far as they are known. A label in the telemetry wins
    over a job table. Adding the same table again changes nothing.
    """
    from gpuledger.cli.job_tables import add_tables
    from gpuledger.cli.showing import give
    from gpuledger.report.documents.jobs import jobs_document

    with screen.stages() as stages:
        result, owners = add_tables(lake_dir, files, zone, stages, taken)
    give(jobs_document(result, owners, lake_dir), screen)
    if result.rows_rejected:
        screen.say(f"rejected rows, each with its file, row, column and value: {result.rejects_file}")
    where = "" if str(lake_dir) == "gpuledger-data" else f" --lake {lake_dir}"
    screen.say(f"next: gpuledger audit{where} --by user")
    return FOUND_PROBLEMS if fail_on == "rejects" and result.rows_rejected else 0
