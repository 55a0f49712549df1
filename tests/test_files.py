"""Files are whole or not there, whoever writes them, and reading them believes nothing."""

from __future__ import annotations

import io
import os
import stat
import threading
import zipfile

import kill_files
import numpy as np
import pytest

from rlfd_gym import _files
from rlfd_gym._file_sets import replacing_set
from rlfd_gym._files import check_folder, guarded, load_arrays, replacing, save_arrays, unguarded, write


@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_two_writers_leave_the_whole_of_one_content(tmp_path, kind):
    counts = kill_files.two_writers(tmp_path, 10, kind)
    assert counts.tried == 10
    assert counts.broken == []


def test_a_second_writer_inside_the_first_does_not_touch_its_file(tmp_path):
    with replacing(tmp_path / "a") as outer:
        outer.write(b"outer")
        write(tmp_path / "a", b"inner")
        assert (tmp_path / "a").read_bytes() == b"inner"
    assert (tmp_path / "a").read_bytes() == b"outer"
    assert os.listdir(tmp_path) == ["a"]


def test_new_files_have_the_permissions_of_any_new_file_and_old_ones_keep_theirs(tmp_path):
    before = os.umask(0o027)
    try:
        write(tmp_path / "new", b"")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640
    (tmp_path / "new").chmod(0o604)
    write(tmp_path / "new", b"again")
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o604


def test_a_link_stays_and_its_file_is_replaced(tmp_path):
    (tmp_path / "far").mkdir()
    (tmp_path / "link").symlink_to("far/file")
    for content in (b"first", b"second"):
        write(tmp_path / "link", content)
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "far" / "file").read_bytes() == content


def test_what_is_no_file_is_not_replaced(tmp_path):
    with pytest.raises(OSError, match="is no file that could be replaced"):
        write(tmp_path, b"")


def test_strays_are_removed_once_they_are_old_and_their_writer_is_dead(tmp_path):
    fcntl = pytest.importorskip("fcntl")
    old, held, young, foreign = (tmp_path / f".rlfd_gym-{digit * 32}.tmp" for digit in "abcx")
    for path in (old, held, young, foreign):
        path.write_bytes(b"half")
    for path in (old, held, foreign):
        os.utime(path, (0, 0))
    with open(held, "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        write(tmp_path / "a", b"")
        assert sorted(os.listdir(tmp_path)) == sorted([held.name, young.name, foreign.name, "a"])
    write(tmp_path / "a", b"")
    assert not held.exists()


def test_a_set_leaves_nothing_behind_and_drops_files_that_it_no_longer_has(tmp_path):
    for names in (("a", "b"), ("b", "c")):
        with replacing_set(tmp_path) as new:
            for name in names:
                write(new / name, name.encode())
    assert [name for name in sorted(os.listdir(tmp_path)) if not name.startswith(".")] == ["b", "c"]
    assert len(list(tmp_path.glob(".*"))) == 2
    with pytest.raises(IsADirectoryError), replacing_set(tmp_path) as new:
        (new / "b").write_bytes(new.read_bytes())
    assert (tmp_path / "b").read_bytes() == b"b"
    assert len(list(tmp_path.glob(".*"))) == 2


def test_where_no_links_can_be_made_the_files_of_a_set_are_moved(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError("no links here")

    monkeypatch.setattr(os, "symlink", refuse)
    kill_files.set_of("n")(tmp_path)
    assert sorted(os.listdir(tmp_path)) == sorted(kill_files.NAMES)
    assert kill_files.words_in(tmp_path) == {"n"}


def test_sets_of_two_writers_come_one_after_the_other(tmp_path):
    workers = [threading.Thread(target=kill_files.set_of(word), args=(tmp_path,)) for word in "abcdef"]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(kill_files.words_in(tmp_path)) == 1
    assert len(list(tmp_path.glob(".rlfd_gym-*"))) == 1


def test_a_folder_is_asked_for_before_the_work_and_not_made(tmp_path, monkeypatch):
    assert check_folder(tmp_path / "a" / "b") == tmp_path / "a" / "b"
    assert os.listdir(tmp_path) == []
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(ValueError, match=r"^docs: .*file is a file, expected a folder"):
            check_folder(path, "docs")
    (tmp_path / "dangling").symlink_to("nowhere")
    with pytest.raises(ValueError, match="is a file, expected a folder"):
        check_folder(tmp_path / "dangling")

    def full(**_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(_files.tempfile, "TemporaryFile", full)
    with pytest.raises(ValueError, match=r"out: nothing can be written to .* \(No space left on device\)"):
        check_folder(tmp_path / "new")


def test_a_folder_on_which_nothing_may_be_written_is_refused():
    if not os.path.isdir("/proc/self"):
        pytest.skip("there is no /proc")
    with pytest.raises(ValueError, match="nothing can be written to /proc/self"):
        check_folder("/proc/self/new")


TEXTS = [
    "=cmd|' /C calc'!A0",
    "+1+1",
    "-1-1",
    "@SUM(A1)",
    "\tx",
    "\rx",
    "'=x",
    "''-x",
    "'",
    "'a",
    "-3.5",
    "'-3.5",
    "+4",
]
TEXTS += ["-1e5", "a=b", "", "-", "-inf", "'-"]


@pytest.mark.parametrize("text", TEXTS)
def test_guarded_texts_are_no_formulas_and_are_read_back(text):
    cell = guarded(text)
    assert unguarded(cell) == text
    if cell.startswith(_files.FORMULA):
        float(cell)  # a number, which is no formula


def test_numbers_are_not_guarded():
    assert guarded(-3.5) == -3.5
    assert guarded(None) is None


@pytest.fixture
def arrays_file(tmp_path):
    save_arrays(tmp_path / "a.npz", "kind", 1, {"x": 1}, {"small": np.arange(3), "large": np.zeros(1000)})
    return tmp_path / "a.npz"


def test_arrays_that_are_together_too_large_are_refused_before_they_are_unpacked(arrays_file, monkeypatch):
    assert load_arrays(arrays_file, "kind", 1)[1]["large"].shape == (1000,)
    monkeypatch.setattr(_files, "MOST_BYTES", 4000)
    with pytest.raises(
        ValueError, match=r"a\.npz is damaged \(large takes 8000 bytes; with those before, more than 4000"
    ):
        load_arrays(arrays_file, "kind", 1)


def with_member(path, name, content):
    """Write an archive again with one more member, or another one of that name."""
    with zipfile.ZipFile(path) as archive:
        members = {own: archive.read(own) for own in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for own, bytes_ in {**members, name: content}.items():
            archive.writestr(own, bytes_)


def test_an_array_that_is_longer_than_its_header_says_is_refused(arrays_file):
    file = io.BytesIO()
    np.lib.format.write_array(file, np.arange(3))
    with_member(arrays_file, "small.npy", file.getvalue() + bytes(10_000_000))
    with pytest.raises(ValueError, match=r"a\.npz is damaged \(small takes 10000152 bytes, but its shape is \(3,\)"):
        load_arrays(arrays_file, "kind", 1)


def test_two_arrays_of_one_name_are_refused(arrays_file):
    with zipfile.ZipFile(arrays_file, "a") as archive, pytest.warns(UserWarning, match="Duplicate name"):
        archive.writestr("small.npy", b"other")
    with pytest.raises(ValueError, match=r"damaged or no kind file .*two arrays have one name"):
        load_arrays(arrays_file, "kind", 1)


def test_a_header_that_could_not_be_read_again_is_not_written(tmp_path, monkeypatch):
    monkeypatch.setattr(_files, "MOST_HEADER", 100)
    with pytest.raises(ValueError, match=r"the header takes .* more than the 100 that are read"):
        save_arrays(tmp_path / "a.npz", "kind", 1, {"x": "y" * 100}, {})
    assert os.listdir(tmp_path) == []
