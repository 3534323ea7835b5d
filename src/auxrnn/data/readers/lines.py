"""Lines of a text file, checked and counted as an editor counts them; and files that hold one text per line."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from auxrnn.data.examples import Problems
from auxrnn.data.readers.rows import Columns, Layout, TableKind, TableRow
from auxrnn.files import cannot_read

MOST_LINE_CHARACTERS = 2**26
BYTE_ORDER_MARK = "\ufeff"


class Lines:
    """An iterator over the lines of a file, line breaks included; a line that is not clean text is refused."""

    def __init__(self, file: TextIO, path: Path, problems: Problems) -> None:
        self._file = file
        self._path = path
        self._problems = problems
        self.number = 0
        """The number of the last line, from 1."""
        self.is_clean = True
        """Whether all lines since this was last set are clean text."""

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self._file.readline(MOST_LINE_CHARACTERS)
        if not line:
            raise StopIteration
        self.number += 1
        if self.number == 1:
            line = line.removeprefix(BYTE_ORDER_MARK)
        if "\0" in line or len(line) >= MOST_LINE_CHARACTERS or not is_unicode(line):
            self._refuse(line)
        return line

    def _refuse(self, line: str) -> None:
        self.is_clean = False
        place = f"{self._path}, line {self.number}"
        if len(line) >= MOST_LINE_CHARACTERS:
            self._problems.refuse(place, f"has more than {MOST_LINE_CHARACTERS:,} characters", "make it shorter")
            while line and not line.endswith(("\n", "\r")):
                line = self._file.readline(MOST_LINE_CHARACTERS)
        elif not is_unicode(line):
            self._problems.refuse(place, f"has bytes that are not UTF-8 ({_show_bad_byte(line)})", "save it as UTF-8")
        else:
            self._problems.refuse(place, "has a NUL character", "remove it, or save the file as UTF-8")


@contextmanager
def open_lines(path: Path, problems: Problems) -> Iterator[Lines]:
    """Open a file of UTF-8 text for reading line by line."""
    try:
        # Bytes that are not UTF-8 arrive as lone surrogates, which `Lines` refuses by line.
        with path.open(encoding="utf-8", errors="surrogateescape", newline="") as file:
            yield Lines(file, path, problems)
    except OSError as error:
        raise cannot_read(path, error) from error


def is_unicode(text: str) -> bool:
    """Return whether a text is free of lone surrogates, which no file can hold."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def measure_text_file(path: Path, _layout: Layout) -> int:
    """Return the size of any file of plain text."""
    try:
        return path.stat().st_size
    except OSError as error:
        raise cannot_read(path, error) from error


def _read_columns(_path: Path) -> Columns:
    return Columns(("text",), are_names=True)


def _read_rows(path: Path, _layout: Layout, problems: Problems) -> Iterator[TableRow]:
    with open_lines(path, problems) as lines:
        for line in lines:
            if lines.is_clean:
                yield TableRow(lines.number, [line.rstrip("\r\n")], None)
            lines.is_clean = True


def _show_bad_byte(line: str) -> str:
    position = next(index for index, character in enumerate(line) if "\ud800" <= character <= "\udfff")
    return f"byte {ord(line[position]) - 0xDC00:#04x} at character {position + 1}"


PLAIN_TEXT = TableKind("plain text", "line", _read_columns, _read_rows, measure_text_file)
