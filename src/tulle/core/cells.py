"""Cells of tables, each read by itself.

A reader that guesses what a column holds from the records lets one record change how all others
are read: with one word in it, a column of numbers turns into text, and ``01`` is no longer 1. So
nothing is guessed here. A CSV file is read as text throughout. What a cell says (a label, a
number, one of some declared names) is decided by that cell and by what was declared, and is the
same in a file, a frame, an array or a list.
"""

from __future__ import annotations

import contextlib
import csv as python_csv
import io
import itertools
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tulle.core.errors import InputError, raise_alone
from tulle.core.reading import FormatError, reading, without_row_numbers

_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?$"
_WHOLE = r"^[+-]?[0-9]+(\.0*)?$"
_BARE = r"^\+?(-?)0*([0-9]+?)(?:\.0*)?$"
"""What is left of a whole number without plus, leading zeros and an empty fraction."""

_DAY = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([T ].*)?$"

_BLOCK = 1 << 20
"""How many bytes of a CSV file are read at a time."""

_LONG = 1000
_EXACT = Context(prec=MAX_PREC, Emin=MIN_EMIN, Emax=MAX_EMAX)
"""Decimals of more digits are written with an exponent, without rounding."""


def read_table(path: str | Path, *, header: bool = True, drop: bool = False) -> Any:
    """Read a CSV file, gzipped or not, as an Arrow table of texts, or a Parquet file as it is.

    A CSV file has commas between its cells and, with ``header``, names in its first line. With
    ``drop`` lines that are no record (too few cells or too many, a quote that is not closed) are
    left out, each by itself, and cells that are no UTF-8 are bytes.

    Raises:
        InputError: when it cannot be read. The reader's own words may quote a record and are kept
            back.
    """
    import pyarrow as pa
    from pyarrow import csv, parquet

    name = str(path)
    try:
        with reading(Path(path).name):
            if name.endswith((".parquet", ".pq")):
                # One file: of a folder the names of all folders in it would become columns.
                with parquet.ParquetFile(name) as file:
                    return without_row_numbers(file.read())
            source: Any = name
            options = csv.ReadOptions(autogenerate_column_names=not header)
            if drop:
                lines = _records(name)
                source = pa.py_buffer("\n".join([*lines, ""]).encode("latin-1"))
                options.block_size = block_for(max(map(len, lines)))
            else:
                options.block_size = block_for(check_quotes(name))
                source = csv_source(name)
            with csv.open_csv(source, options) as opened:
                names = opened.schema.names
            # In one column an empty line is an empty cell.
            parsing = csv.ParseOptions(ignore_empty_lines=len(names) > 1)
            kind = pa.binary() if drop else pa.string()
            texts = csv.ConvertOptions(
                column_types=dict.fromkeys(names, kind), strings_can_be_null=False
            )
            return csv.read_csv(source, options, parsing, texts)
    except FormatError:
        raise_alone(
            InputError(
                f"{Path(path).name} cannot be read as a table. A CSV file is UTF-8 text with a "
                "comma between cells, equally many cells in every line and names in the first; a "
                "Parquet file ends in .parquet."
            )
        )


def csv_source(path: str | Path) -> Any:
    """Return what Arrow is to read of a CSV file: of a first line alone also where it has no end.

    Arrow takes that for an empty file, so that whether there is a record would show.
    """
    import pyarrow as pa

    first, *others = itertools.islice(_lines(path), 2)
    return str(path) if others else pa.py_buffer(first.encode("latin-1") + b"\n")


def check_quotes(path: str | Path, delimiter: str = ",") -> int:
    """Return how long the longest line of a CSV file is; every record must stand on one line.

    Readers take what follows a quote that is opened and not closed for one cell, to the next quote
    or the end of the file: one record would swallow those of others, and nothing would show it.

    Raises:
        InputError: naming the line.
    """
    closed, longest = _closed_quotes(delimiter), 0
    for number, line in enumerate(_lines(path), 1):
        longest = max(longest, len(line))
        if not closed(line):
            raise InputError(
                f"{Path(path).name}, line {number}: a quote is opened and not closed on the "
                "same line, or something follows it. Every record stands on one line; write a "
                'quote inside a quoted cell twice ("").'
            )
    return longest


def block_for(longest: int) -> int:
    """Return how many bytes a reader must take at a time: lines of any length fit.

    Else whether a line longer than a block can be read would follow from where it stands.
    """
    return max(_BLOCK, longest + 2)


def _closed_quotes(delimiter: str, further: int | None = None) -> Callable[[str], bool]:
    """Return what says whether a line is one record: of so many further cells, or of any number."""
    end = re.escape(delimiter)
    # A quote after blanks opens a cell for some readers, and not for others.
    cell = rf'(?:"(?:[^"]|"")*+"|(?![^\S{end}]*+")[^{end}]*+)'
    many = "*+" if further is None else f"{{{further}}}"
    whole = re.compile(f"{cell}(?:{end}{cell}){many}")

    def closed(line: str) -> bool:
        if '"' in line:
            return whole.fullmatch(line) is not None
        return further is None or line.count(delimiter) == further

    return closed


def _lines(path: str | Path) -> Iterator[str]:
    """Yield the lines of a file, compressed or not: bytes as they are, all line ends alike.

    A byte order mark before the first one is no part of it; elsewhere readers take it for a letter.
    """
    import pyarrow as pa

    with reading(Path(path).name), Path(path).open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    with (
        reading(Path(path).name),
        pa.input_stream(str(path), compression="gzip" if packed else "detect") as stream,
        io.TextIOWrapper(stream, encoding="latin-1", newline=None) as lines,
    ):
        for number, line in enumerate(lines):
            bare = line.removesuffix("\n")
            yield bare if number else bare.removeprefix("\xef\xbb\xbf")


def _records(path: str) -> list[str]:
    """Return the first line of a CSV file, and the others that are records of as many cells.

    Raises:
        FormatError: when the first one is no record.
    """
    lines = _lines(path)
    first = next(lines, "")
    if not _closed_quotes(",")(first):
        raise FormatError(path)
    (names,) = python_csv.reader([first])
    return [first, *filter(_closed_quotes(",", len(names) - 1), lines)]


def texts(values: Any, what: str) -> Any:
    """Return the label that each cell says, as an Arrow array of texts; null where it is missing.

    Whole numbers are written without a point, whatever the type of their column; None, NaN and
    empty texts are missing.

    Raises:
        InputError: when it is not a column at all.

    Example:
        >>> texts([1, 2.0, "x", None, ""], "row").to_pylist()
        ['1', '2', 'x', None, None]
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    column = _column(values, what)
    if pa.types.is_floating(column.type):
        found = _float_texts(column)
    elif _is_text(column.type) and _is_valid(column):
        found = column if pa.types.is_large_string(column.type) else column.cast(pa.string())
    elif _is_text(column.type) or _is_binary(column.type):
        # By value: one that is not UTF-8 must not change how the others are read.
        coded = column.cast(pa.large_binary()).dictionary_encode()
        found = _one_by_one(coded.dictionary.to_pylist()).take(coded.indices)
    else:
        try:
            found = column.cast(pa.string())
        except pa.ArrowException:
            found = _one_by_one(column.to_pylist())
    return pc.if_else(pc.equal(found, ""), None, found)


def numbers(values: Any, what: str) -> npt.NDArray[np.float64]:
    """Return the finite number that each cell says; NaN where it says none.

    Example:
        >>> numbers(["1e3", " 2", "two", None, True], "weight").tolist()
        [1000.0, 2.0, nan, nan, 1.0]
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype.kind in "biuf":
        return _finite(np.ma.filled(doubles(values), np.nan))
    column = _column(values, what)
    kind = column.type
    if pa.types.is_nested(kind):
        raise InputError(f"The column {what} must have one value for each row.")
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind):
        said = column.cast(pa.int8()) if pa.types.is_boolean(kind) else column
        found = said.cast(pa.float64(), safe=False)
    else:
        bare = _bare(texts(column, what))
        fits = pc.match_substring_regex(bare, _NUMBER)
        found = pc.if_else(fits, bare, None).cast(pa.float64())
    return _finite(np.array(found.fill_null(float("nan")).to_numpy(zero_copy_only=False)))


def doubles(values: Any) -> npt.NDArray[np.float64]:
    """Return an array as doubles; what is beyond them is infinite, without a warning."""
    with np.errstate(over="ignore"):
        found: npt.NDArray[np.float64] = values.astype(np.float64)
    return found


def grid(values: Any, refusal: str) -> npt.NDArray[Any]:
    """Return the numbers of a frame, an array or lists of rows; NaN where one is missing.

    Numbers of one type stay as they are. All else is read cell by cell: what NumPy or a frame makes
    of several types together follows from all cells, and of what is missing among them it may make
    a number.

    Raises:
        InputError: in these words when a cell says something that is no number; and when rows have
            different lengths.

    Example:
        >>> grid([["1", None], [True, 2.5]], "Only numbers.").tolist()
        [[1.0, nan], [1.0, 2.5]]
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of masked cells
        if hasattr(values, "columns"):
            columns = _columns(values if hasattr(values, "iloc") else plain(values))
            if not _are_numpy(getattr(column, "dtype", None) for column in columns):
                found = [_all_numbers(column, refusal).reshape(-1, 1) for column in columns]
                return np.hstack(found) if found else np.empty((len(values), 0))
            values = values.to_numpy()
        array = values if isinstance(values, np.ma.MaskedArray) else _as_array(values)
        if array.dtype == object:
            return _all_numbers(array.ravel().tolist(), refusal).reshape(array.shape)
        if isinstance(array, np.ma.MaskedArray) and array.dtype.kind in "biuf":
            return np.ma.filled(array.astype(np.float64), np.nan)
        return np.asarray(array)


def _as_array(values: Any) -> npt.NDArray[Any]:
    """Return an array: of objects, where NumPy finds no type or would make texts of numbers."""
    found = None
    try:
        found = np.asarray(values)
        if found.dtype.kind in "US" and not hasattr(values, "__array__"):
            found = np.asarray(values, dtype=object)
    except (TypeError, ValueError, OverflowError):
        with contextlib.suppress(ValueError):
            found = np.asarray(values, dtype=object)
    if found is None or (found.dtype == object and found.ndim < 2):
        raise InputError("The rows of a table of numbers must all have the same length.")
    return found


def plain(values: Any) -> Any:
    """Return a frame of pandas with columns of NumPy's types; an Arrow table without row numbers.

    Of columns of categories pandas makes one array by finding a type for all of them; what is
    missing is a number then, such as 0. Anything else is returned as it is.
    """
    if hasattr(values, "column_names"):
        return without_row_numbers(values)
    kinds = getattr(values, "dtypes", None) if hasattr(values, "iloc") else None
    if getattr(values, "ndim", 0) != 2 or kinds is None:
        return values
    return values if _are_numpy(kinds) else values.astype(object)


def _are_numpy(kinds: Iterable[Any]) -> bool:
    return all(isinstance(kind, np.dtype) for kind in kinds)


def _columns(frame: Any) -> list[Any]:
    """Return the columns of a frame of pandas, polars or Arrow."""
    if hasattr(frame, "iloc"):
        return [frame.iloc[:, place] for place in range(frame.shape[1])]
    return list(frame.get_columns() if hasattr(frame, "get_columns") else frame.columns)


def _all_numbers(values: Any, refusal: str) -> npt.NDArray[np.float64]:
    found = numbers(values, "of numbers")
    if bool(np.isnan(found).any()):
        said = texts(values, "of numbers").is_valid().to_numpy(zero_copy_only=False)
        if bool((np.isnan(found) & said).any()):
            raise InputError(refusal)
    return found


def days(values: Any, what: str) -> tuple[npt.NDArray[np.datetime64], npt.NDArray[np.bool_]]:
    """Return the day that each cell says, NaT where it says none, and which cells are missing.

    A date, a moment, or the text of one: ``2026-11-09``, and of a moment the day as it is written.

    Raises:
        InputError: when it is not a column at all.

    Example:
        >>> days(["2026-11-09", "2026-11-09T23:00:00", "2026-02-30", "soon", ""], "day")[0].tolist()
        [datetime.date(2026, 11, 9), datetime.date(2026, 11, 9), None, None, None]
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    values = _as_held(values)
    typed = isinstance(values, np.ndarray) and values.dtype.kind == "M"
    if not typed and not isinstance(values, pa.Array | pa.ChunkedArray):
        # What is not equal to itself is missing: NaN, and the NaT of numpy and pandas.
        values = [None if _is_missing(one) else str(one) for one in _listed(values)]
    said = texts(values, what)
    missing = np.asarray(said.is_null().to_numpy(zero_copy_only=False))
    written = pc.if_else(pc.match_substring_regex(said, _DAY), said, None).fill_null("0000-00-00")
    letters = pc.utf8_slice_codeunits(written, 0, 10).to_numpy(zero_copy_only=False).astype("U10")
    digits = letters.view(np.uint32).reshape(-1, 10).astype(np.int64) - ord("0")
    year, month, day = (
        digits[:, start:stop] @ 10 ** np.arange(stop - start - 1, -1, -1)
        for start, stop in ((0, 4), (5, 7), (8, 10))
    )
    months = ((year - 1970) * 12 + month - 1).astype("datetime64[M]")
    found = months.astype("datetime64[D]") + (day - 1)
    good = (year > 0) & (month > 0) & (month < 13) & (day > 0)
    found[~(good & (found.astype("datetime64[M]") == months))] = np.datetime64("NaT")
    return found, missing


def _finite(numbers: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    numbers[~np.isfinite(numbers)] = np.nan
    return numbers + 0.0  # of the two zeros one


def places(values: Any, names: Sequence[Any], what: str) -> npt.NDArray[np.int64]:
    """Return the place of each cell among declared names; -1 where it is none of them.

    A cell is the name whose text it says. Where names are numbers or truth values, a cell is also
    the one that it says in another way: ``01`` or ``1.0`` is 1, ``TRUE`` is True.

    Example:
        >>> places(["01", "2.0", "x"], [1, 2], "row").tolist()
        [0, 1, -1]
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    column = _column(values, what)
    if isinstance(names, range) and pa.types.is_integer(column.type):
        whole = np.asarray(column.fill_null(0))
        inside = np.asarray(column.is_valid()) & (whole >= 0) & (whole < len(names))
        return np.where(inside, whole, 0).astype(np.int64) - ~inside
    said = texts(column, what)
    listed = texts(list(names), what)
    found = pc.index_in(said, value_set=listed, skip_nulls=True)
    worded = pa.array([isinstance(name, str) for name in names])
    if not all(worded.to_pylist()):
        numerals = pc.if_else(worded, None, _numerals(listed))
        other = pc.index_in(_numerals(said), value_set=numerals, skip_nulls=True)
        found = pc.coalesce(found, other)
    return np.asarray(found.fill_null(-1).to_numpy(zero_copy_only=False)).astype(np.int64)


def codes(values: Any, what: str) -> npt.NDArray[np.int64]:
    """Number the different labels of a column, in order of appearance; -1 where one is missing.

    Example:
        >>> codes(["b", "a", None, "b"], "individual").tolist()
        [0, 1, -1, 0]
    """
    import pyarrow as pa

    column = _column(values, what)
    if not pa.types.is_integer(column.type):
        column = texts(column, what)
    found = column.dictionary_encode().indices.fill_null(-1)
    return np.asarray(found.to_numpy(zero_copy_only=False)).astype(np.int64)


def _column(values: Any, what: str) -> Any:
    """Return the values as one Arrow array, none of them changed; of several types as texts."""
    import pyarrow as pa

    values = _as_held(values)
    if isinstance(values, pa.Array | pa.ChunkedArray):
        column = values
    elif isinstance(values, str | bytes) or not hasattr(values, "__len__"):
        raise InputError(f"The column {what} must be a list or an array.")
    else:
        if getattr(values, "ndim", 1) != 1:
            raise InputError(f"The column {what} must have one value for each row.")
        if not _has_type(values):
            values = _listed(values)
            kinds = {*map(type, values)} - {type(None)}
            if len(kinds) > 1 or not kinds <= _PLAIN:
                # A type, and how it writes a value, would follow from all of them together.
                return _one_by_one(values)
        try:
            column = pa.array(values, from_pandas=True)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            return _one_by_one(_listed(values))
    if pa.types.is_dictionary(column.type):
        column = looked_up(column)
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if pa.types.is_null(column.type):
        column = column.cast(pa.string())
    if pa.types.is_float16(column.type):
        column = column.cast(pa.float32())
    return column


def _as_held(values: Any) -> Any:
    """Return a typed column of a frame as its memory holds it, and anything else as it is.

    On the way through Python's values one that they cannot be, such as a day beyond the year 9999
    or a text that is not UTF-8, would make the whole column fail.
    """
    import pyarrow as pa

    if not hasattr(values, "__arrow_c_stream__") or not _has_type(values):
        return values
    try:
        return pa.chunked_array(values)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return values


def looked_up(column: Any) -> Any:
    """Return a column of categories, in Arrow, as a column of what they stand for."""
    import pyarrow as pa

    # Of texts in this layout Arrow cannot look up by number.
    held = column.type.value_type
    held = pa.large_string() if held == pa.string_view() else held
    parts = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    found = [part.dictionary.cast(held).take(part.indices) for part in parts]
    return pa.chunked_array(found, type=held)


def _has_type(values: Any) -> bool:
    """Say whether a column declares its type: a list, or one of objects, has none."""
    kind = getattr(values, "dtype", None)
    if hasattr(kind, "pyarrow_dtype") or type(kind).__name__ == "StringDtype":
        return True  # of pandas, which calls them objects
    return kind is not None and getattr(kind, "kind", "") != "O" and str(kind) != "Object"


_PLAIN = {str, int, float, bool}
"""Arrow writes values of one of these as each by itself. True beside 1.0 would be 1."""


def _is_text(kind: Any) -> bool:
    import pyarrow.types as types

    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _is_valid(column: Any) -> bool:
    """Say whether all texts are UTF-8: Arrow takes that for granted."""
    import pyarrow as pa

    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _is_binary(kind: Any) -> bool:
    import pyarrow.types as types

    return bool(
        types.is_binary(kind)
        or types.is_large_binary(kind)
        or types.is_fixed_size_binary(kind)
        or types.is_binary_view(kind)
    )


def _listed(values: Any) -> list[Any]:
    return list(values.tolist() if hasattr(values, "tolist") else values)


def _one_by_one(values: Sequence[Any]) -> Any:
    """Return texts of values that have no type in common, each as its own type would have it."""
    import pyarrow as pa

    found = [None if _is_missing(value) else _text(value) for value in values]
    floats = [place for place, value in enumerate(values) if isinstance(value, float | np.floating)]
    written = _float_texts(pa.array([float(values[place]) for place in floats], pa.float64()))
    for place, text in zip(floats, written.to_pylist(), strict=True):
        found[place] = text
    return pa.array(found, pa.string())


def _is_missing(value: Any) -> bool:
    """Say whether a value is missing: None, NaN of any type, pandas' NA and NaT."""
    if value is None or value is np.ma.masked or isinstance(value, str | bytes):
        return not isinstance(value, str | bytes)
    if isinstance(value, Decimal):
        return value.is_nan()
    try:
        return bool(value != value)
    except (TypeError, ValueError):
        # pandas' NA compares with nothing; arrays compare with all of their elements.
        return type(value).__name__ == "NAType"


_BYTES = "\0bytes:"
"""How the text of bytes starts that are no UTF-8; nobody writes labels that start so."""


def _text(value: Any) -> str:
    """Return the text of one value, by that value alone."""
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        return _decimal_text(value)
    if isinstance(value, datetime):
        # As Arrow writes a column of them.
        plain = value if value.tzinfo is None else value.astimezone(UTC)
        written = plain.replace(tzinfo=None).isoformat(" ", "microseconds")
        return written if value.tzinfo is None else written + "Z"
    if not isinstance(value, bytes | bytearray | memoryview):
        value = str(value).encode("utf-8", "surrogatepass")
    try:
        return bytes(value).decode("utf-8")
    except UnicodeDecodeError:
        return _BYTES + bytes(value).hex()


def _decimal_text(value: Decimal) -> str:
    """Return the text of a decimal: the same for 1, 1.0 and 1.00."""
    if not value.is_finite():
        return str(value)
    if abs(value.adjusted()) > _LONG:
        return str(value.normalize(_EXACT))
    written = format(value, "f")
    bare = written.rstrip("0").rstrip(".") if "." in written else written
    return "0" if bare == "-0" else bare


def _float_texts(column: Any) -> Any:
    """Return texts of floats: whole numbers without a point, NaN as missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = pc.if_else(pc.is_nan(column), None, column)
    whole = pc.and_(pc.equal(pc.floor(column), column), pc.less(pc.abs(column), 2.0**63))
    as_whole = pc.if_else(whole, column, None).cast(pa.int64()).cast(pa.string())
    return pc.coalesce(as_whole, column.cast(pa.string()))


def _bare(said: Any) -> Any:
    """Return texts without spaces around them, in small letters, truth values as 1 and 0."""
    import pyarrow.compute as pc

    bare = pc.ascii_lower(pc.ascii_trim_whitespace(said))
    bare = pc.if_else(pc.equal(bare, "true"), "1", bare)
    return pc.if_else(pc.equal(bare, "false"), "0", bare)


def _numerals(said: Any) -> Any:
    """Return one text for each number, however it is written; null for what is no number."""
    import pyarrow as pa
    import pyarrow.compute as pc

    bare = _bare(said)
    whole = pc.replace_substring_regex(bare, _BARE, r"\1\2")
    whole = pc.if_else(pc.equal(whole, "-0"), "0", whole)
    is_whole = pc.match_substring_regex(bare, _WHOLE)
    is_number = pc.match_substring_regex(bare, _NUMBER)
    broken = pc.if_else(pc.and_not(is_number, is_whole), bare, None)
    as_float = _float_texts(broken.cast(pa.float64()))
    return pc.if_else(is_whole, whole, as_float)
