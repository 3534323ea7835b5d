"""Lines of a text file, clean and counted as an editor counts them; and files that have one text a line."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from auxrnn.data.examples import Problems
from auxrnn.data.tables.rows import Layout, Row, Sample, Size, take_sample
from auxrnn.errors import RunError

MOST_LINE_CHARACTERS = 2**26
BYTE_ORDER_MARK = "\ufeff"


class Lines:
    """The lines of a file one by one, with their line breaks; what is not clean text is refused where it stands."""

    def __init__(self, file: TextIO, path: Path, problems: Problems) -> None:
        self._file = file
        self._path = path
        self._problems = problems
        self.number = 0
        self.row: list[str] = []
        """The lines since `start_row`."""
        self.is_clean = True
        """Whether all of them could be read."""

    def start_row(self) -> None:
        """Begin to collect the lines of a new row."""
        self.row.clear()
        self.is_clean = True

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self._file.readline(MOST_LINE_CHARACTERS)
        if not line:
            raise StopIteration
        self.number += 1
        if self.number == 1:
            line = line.removeprefix(BYTE_ORDER_MARK)
        self.row.append(line)
        if "\0" in line or len(line) >= MOST_LINE_CHARACTERS or not (line.isascii() or is_unicode(line)):
            self._refuse(line)
        return line

    def _refuse(self, line: str) -> None:
        self.is_clean = False
        place = f"{self._path}, line {self.number}"
        if len(line) >= MOST_LINE_CHARACTERS:
            self._problems.refuse(place, f"has more than {MOST_LINE_CHARACTERS:,} characters", "make it shorter")
            self._pass_rest_of_line(line)
        elif not is_unicode(line):
            self._problems.refuse(place, f"has bytes that are not UTF-8 ({_show_bad_byte(line)})", "save it as UTF-8")
        else:
            self._problems.refuse(place, "has a NUL character", "remove it, or save the file as UTF-8")

    def _pass_rest_of_line(self, line: str) -> None:
        while line and not line.endswith(("\n", "\r")):
            line = self._file.readline(MOST_LINE_CHARACTERS)


@contextmanager
def open_text(path: Path) -> Iterator[TextIO]:
    """Open a file whose lines end as they are; bytes that are not UTF-8 come as lone surrogates."""
    try:
        with path.open(encoding="utf-8", errors="surrogateescape", newline="") as file:
            yield file
    except OSError as error:
        raise cannot_read(path, error) from error


def cannot_read(path: Path, error: OSError) -> RunError:
    """Say in one sentence that a file could not be read, why, and what to do."""
    return RunError(f"{path} cannot be read ({error.strerror or 'unknown reason'}); check that the file is there")


def is_unicode(text: str) -> bool:
    """Say whether a text is free of lone surrogates, which no file can hold."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def sample_lines(path: Path) -> Sample:
    """Give the first lines of a file that has one text a line."""
    with open_text(path) as file:
        lines = Lines(file, path, Problems(is_patient=True))
        rows = take_sample([line.rstrip("\r\n")] for line in lines)
    return Sample(("text",), rows)


def read_lines(path: Path, _: Layout, problems: Problems) -> Iterator[Row]:
    """Give each line as a text without a label."""
    with open_text(path) as file:
        lines = Lines(file, path, problems)
        for line in lines:
            if lines.is_clean:
                yield Row(lines.number, [line.rstrip("\r\n")], None)
            lines.start_row()


def measure_lines(path: Path, _: Layout) -> Size:
    """Give the size of any file of plain text."""
    with open_text(path) as file:
        return Size(None, os.fstat(file.fileno()).st_size)


def _show_bad_byte(line: str) -> str:
    """Name the first byte that could not be decoded, and where it stands."""
    position = next(index for index, character in enumerate(line) if "\ud800" <= character <= "\udfff")
    return f"byte {ord(line[position]) - 0xDC00:#04x} at character {position + 1}"
