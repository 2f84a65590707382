"""Records that print as tables, on a terminal and in a notebook."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from lakebloom.display import html
from lakebloom.display.visible import visible

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Printable", "RecordTable", "amount", "sized", "text_of"]

_UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB")


class Printable:
    """A record that prints its fields as a table of two columns."""

    def shown(self) -> list[tuple[str, str]]:
        """Return the fields as (name, text)."""
        return [
            (_label(attribute.name), text_of(attribute.name, getattr(self, attribute.name)))
            for attribute in fields(self)  # type: ignore[arg-type]
            if not attribute.name.startswith("_")
        ]

    def __str__(self) -> str:
        rows = [(visible(name), visible(value)) for name, value in self.shown()]
        width = max(len(name) for name, _ in rows)
        return "\n".join(f"{name:<{width}}  {value}".rstrip() for name, value in rows)

    def __repr__(self) -> str:
        return str(self)  # for dataclasses with repr=False

    def _repr_html_(self) -> str:
        return html.card(f"<h4>{_words(type(self).__name__)}</h4>", html.pairs(self.shown()))


RecordT = TypeVar("RecordT", bound=Printable)


class RecordTable(Sequence[RecordT], Generic[RecordT]):
    """Records of one kind, printed as a table with one line for each."""

    def __init__(self, records: Sequence[RecordT]) -> None:
        self._records = tuple(records)

    def __len__(self) -> int:
        return len(self._records)

    def __getitem__(self, item: Any) -> Any:
        return self._records[item]

    def __iter__(self) -> Iterator[RecordT]:
        return iter(self._records)

    def to_arrow(self) -> pa.Table:
        """Return the records as an Arrow table, one column for each field."""
        import pyarrow as pa

        rows = [asdict(record) for record in self._records]  # type: ignore[call-overload]
        names = list(rows[0]) if rows else []
        return pa.table({name: _arrow_column(name, [row[name] for row in rows]) for name in names})

    def to_pandas(self) -> Any:
        """Return the records as a pandas DataFrame. Needs pandas, which ``lakebloom[spark]`` installs."""
        return self.to_arrow().to_pandas()

    def _cells(self) -> list[list[str]]:
        if not self._records:
            return []
        shown = [record.shown() for record in self._records]
        names = [name for name, _ in max(shown, key=len)]  # some records leave out their last fields
        return [names, *([value for _, value in rows] + [""] * (len(names) - len(rows)) for rows in shown)]

    def __str__(self) -> str:
        cells = self._cells()
        if not cells:
            return "(none)"
        cells = [[visible(cell) for cell in line] for line in cells]
        widths = [max(len(line[i]) for line in cells) for i in range(len(cells[0]))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in cells]
        return "\n".join(line.rstrip() for line in lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        cells = self._cells()
        return html.card(html.table(cells[0], cells[1:]) if cells else '<p class="quiet">(none)</p>')


def _arrow_column(name: str, values: list[Any]) -> pa.Array:
    import pyarrow as pa

    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError):  # such as a granularity: a word in one row, a number in another
        return pa.array([text_of(name, value) for value in values])


def amount(size_bytes: float) -> str:
    """Return a size in a readable unit.

    >>> amount(950), amount(12_345)
    ('950 bytes', '12.3 kB')
    """
    number, power = size_bytes, 0
    while number >= 1000 and power < len(_UNITS) - 1:
        number, power = number / 1000, power + 1
    return f"{number:,.0f} bytes" if power == 0 else f"{number:.3g} {_UNITS[power]}"


def sized(size_bytes: float, unit: str = "") -> str:
    """Return a size in bytes, followed by a readable unit.

    >>> sized(950), sized(12_345), sized(12_345, " bytes")
    ('950', '12,345 (12.3 kB)', '12,345 bytes (12.3 kB)')
    """
    exact = f"{size_bytes:,}{unit}"
    return f"{exact} ({amount(size_bytes)})" if size_bytes >= 1000 else exact


def _words(class_name: str) -> str:
    """Return a class's name as words.

    >>> _words("IndexRecord")
    'Index record'
    """
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", class_name).capitalize()


def _label(name: str) -> str:
    return name.removesuffix("_ms").replace("_", " ")


def text_of(name: str, value: Any) -> str:
    """Return a field's value as readable text."""
    if name == "timestamp_ms":
        return datetime.datetime.fromtimestamp(value / 1000, datetime.timezone.utc).isoformat(" ", "milliseconds")
    if name == "seconds" and isinstance(value, dict):
        parts = ", ".join(f"{phase} {round(each, 3):.3g}" for phase, each in value.items())
        return f"{sum(value.values()):.3g} ({parts})" if parts else ""
    if isinstance(value, dict):
        return ", ".join(f"{_label(key)} {text_of(key, item)}" for key, item in value.items())
    if isinstance(value, (tuple, list)):
        return ", ".join(str(item) for item in value)
    if isinstance(value, float):
        return f"{value:.3g}"
    if isinstance(value, int) and not isinstance(value, bool):
        return sized(value) if "bytes" in name.split("_") else f"{value:,}"
    return "" if value is None else str(value)
