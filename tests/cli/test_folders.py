"""Is a folder replaced whole or not at all, and never somebody else's?"""

from __future__ import annotations

import pytest

from gpuledger.cli.commands.demo import replacing
from gpuledger.errors import FileFault

MARK = ".mine"


def make(target, text):
    with replacing(target, MARK) as folder:
        (folder / "file").write_text(text)


def test_made_then_replaced(tmp_path):
    target = tmp_path / "a" / "out"
    make(target, "one")
    (target / "extra").write_text("left over")
    make(target, "two")
    assert (target / "file").read_text() == "two"
    assert not (target / "extra").exists()
    assert [p.name for p in target.parent.iterdir()] == ["out"]


def test_an_empty_folder_may_be_filled(tmp_path):
    make(tmp_path, "one")
    assert (tmp_path / "file").read_text() == "one"


def test_a_folder_of_others_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(FileFault, match="holds other things"):
        make(tmp_path, "one")
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_file_is_refused(tmp_path):
    (tmp_path / "out").write_text("mine")
    with pytest.raises(FileFault, match="it is a file"):
        make(tmp_path / "out", "one")


def test_a_failure_leaves_the_old_folder(tmp_path):
    target = tmp_path / "out"
    make(target, "one")
    with pytest.raises(TypeError):
        make(target, None)
    assert (target / "file").read_text() == "one"
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_a_failed_swap_puts_the_old_folder_back(tmp_path, monkeypatch):
    target = tmp_path / "out"
    make(target, "one")
    path_type = type(target)
    real = path_type.rename

    def rename(self, other):
        if self.name == "new":
            raise PermissionError(13, "Permission denied", str(other))
        return real(self, other)

    monkeypatch.setattr(path_type, "rename", rename)
    with pytest.raises(FileFault, match="permission denied"):
        make(target, "two")
    assert (target / "file").read_text() == "one"
