"""Do all commands that look again and again take the same forms of `--every`?"""

from __future__ import annotations

import shutil

import pytest

COMMANDS = {
    "top": ("top", "--lake", "lake", "--once"),
    "watch": ("watch", "--lake", "lake", "--dry-run"),
    "serve": ("serve", "--lake", "lake", "--host", "203.0.113.1"),  # an address no machine has: it ends there
}


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("text", ["5", "5s", "2m", "0.5"])
def test_seconds_may_be_written_without_their_unit(cli, fleet_lake, tmp_path, name, text):
    shutil.copytree(fleet_lake, tmp_path / "lake")
    ended = cli(*COMMANDS[name], "--every", text)
    assert ended.code == (2 if name == "serve" else 0), ended.err
    assert "--every" not in ended.err
    assert name != "serve" or "cannot listen on 203.0.113.1" in ended.err


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("text", ["", "soon", "5x", "-1", "0", "9d", "nan"])
def test_other_words_are_refused_with_what_to_write(cli, name, text):
    ended = cli(*COMMANDS[name], "--every", text)
    assert ended.code == 2
    assert ended.err.startswith("error: --every")
    assert "5 is 5s" in ended.err
