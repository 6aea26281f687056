# SPDX-License-Identifier: Apache-2.0
"""Planted faults of graphs with sizes: each shows at some sizes alone."""

from __future__ import annotations

import attrs
from uir_tvm.igraph import IGraph, parse_igraph

HARDWARE = """
hardware h { kind = cpu num_groups = 4 num_units = 2 reg_bytes = 65536 sram_bytes = 65536 vector_bytes = 32 }
"""
#: y = exp(x) on n rows of 8, four rows a unit.
ROWS = f"""{HARDWARE}
igraph rows on h parallel ((n + 3) / 4, 1) {{
  size n = [1, 1000]
  x = iPointer(dram, fp32, (n, 8), in)
  y = iPointer(dram, fp32, (n, 8), out)
  a = iPointer(reg, fp32, 32)
  b = iPointer(reg, fp32, 32)
  move.dram.reg.fp32 a[0; (4,8); (8,1); rows :n - 4*pid], x[32*pid; (4,8); (8,1); rows :n - 4*pid]
  unary.exp.fp32 b[0; (4,8); (8,1); rows :n - 4*pid], a[0; (4,8); (8,1); rows :n - 4*pid]
  move.reg.dram.fp32 y[32*pid; (4,8); (8,1); rows :n - 4*pid], b[0; (4,8); (8,1); rows :n - 4*pid]
}}
"""
#: A copy of n elements, 64 a unit.
FLAT = f"""{HARDWARE}
igraph flat on h parallel ((n + 63) / 64, 1) {{
  size n = [32, 65536, 32]
  x = iPointer(dram, fp32, (n), in)
  y = iPointer(dram, fp32, (n), out)
  a = iPointer(reg, fp32, 64)
  move.dram.reg.fp32 a[0; (1,64); (64,1); cols :n - 64*pid], x[64*pid; (1,64); (64,1); cols :n - 64*pid]
  move.reg.dram.fp32 y[64*pid; (1,64); (64,1); cols :n - 64*pid], a[0; (1,64); (64,1); cols :n - 64*pid]
}}
"""
#: The tiles of x in reverse, by way of temporary memory; groups of two units, a tile of four elements each.
PHASES = f"""{HARDWARE}
igraph phases on h parallel ((n + 7) / 8, 2) {{
  size n = [8, 4096, 8]
  x = iPointer(dram, fp32, (n), in)
  y = iPointer(dram, fp32, (n), out)
  t = iPointer(dram, fp32, (n))
  a = iPointer(reg, fp32, 4)
  b = iPointer(reg, fp32, 4)
  move.dram.reg.fp32 a[0; (1,4); (4,1)], x[4*pid; (1,4); (4,1)]
  move.reg.dram.fp32 t[4*pid; (1,4); (4,1)], a[0; (1,4); (4,1)]
  sync.dram t[0; (1,4096); (4096,1); cols :n], t[0; (1,4096); (4096,1); cols :n]
  move.dram.reg.fp32 b[0; (1,4); (4,1)], t[n - 4 - 4*pid; (1,4); (4,1)]
  move.reg.dram.fp32 y[4*pid; (1,4); (4,1)], b[0; (1,4); (4,1)]
}}
"""
#: The maximum less of n rows of m, and a row that all share; a row for each unit, in a tile of 512.
OPEN_ROWS = f"""{HARDWARE}
igraph open_rows on h parallel (n, 1) {{
  size n = [1, 1000]
  size m = [1, 300]
  x = iPointer(dram, fp32, (n, m), in)
  b = iPointer(dram, fp32, (m), in)
  y = iPointer(dram, fp32, (n, m), out)
  a = iPointer(reg, fp32, 512)
  c = iPointer(reg, fp32, 512)
  move.dram.reg.fp32 a[0; (1,512); (512,1); cols :m], x[m*pid; (1,512); (512,1); cols :m]
  move.dram.reg.fp32 c[0; (1,512); (512,1); cols :m], b[0; (1,512); (512,1); cols :m]
  binary.add.fp32 a[0; (1,512); (512,1); cols :m], a[0; (1,512); (512,1); cols :m], \
c[0; (1,512); (512,1); cols :m]
  move.reg.dram.fp32 y[m*pid; (1,512); (512,1); cols :m], a[0; (1,512); (512,1); cols :m]
}}
"""
#: n rows of m with rows for columns, four at a time.
TURNED = f"""{HARDWARE}
igraph turned on h parallel ((n + 3) / 4, 1) {{
  size n = [1, 1000]
  size m = [1, 100]
  x = iPointer(dram, fp32, (n, m), in)
  y = iPointer(dram, fp32, (m, n), out)
  a = iPointer(reg, fp32, 512)
  move.dram.reg.fp32 a[0; (4,128); (128,1); rows :n - 4*pid; cols :m], \
x[4*m*pid; (4,128); (m,1); rows :n - 4*pid; cols :m]
  move.reg.dram.fp32 y[4*pid; (4,128); (1,n); rows :n - 4*pid; cols :m], \
a[0; (4,128); (128,1); rows :n - 4*pid; cols :m]
}}
"""

#: Rows of m of a table of n, k of them, four at a time.
OPEN_TABLE = f"""{HARDWARE}
igraph open_table on h parallel ((k + 3) / 4, 1) {{
  size n = [1, 1000]
  size m = [1, 100]
  size k = [1, 60]
  x = iPointer(dram, fp32, (n, m), in)
  i = iPointer(dram, int32, (k), in)
  y = iPointer(dram, fp32, (k, m), out)
  j = iPointer(reg, int32, 4)
  a = iPointer(reg, fp32, 512)
  move.dram.reg.int32 j[0; (4,1); (1,1); rows :k - 4*pid], i[4*pid; (4,1); (1,1); rows :k - 4*pid]
  gather.fp32 a[0; (4,128); (128,1); rows :k - 4*pid; cols :m], \
x[0; (1000,128); (m,1); rows :n; cols :m], j[0; (4,1); (1,1); rows :k - 4*pid]
  move.reg.dram.fp32 y[4*m*pid; (4,128); (m,1); rows :k - 4*pid; cols :m], \
a[0; (4,128); (128,1); rows :k - 4*pid; cols :m]
}}
"""
#: k rows of m stored in a table of n where data says, four at a time.
OPEN_UPDATE = f"""{HARDWARE}
igraph open_update on h parallel ((k + 3) / 4, 1) {{
  size n = [1, 1000]
  size m = [1, 100]
  size k = [1, 60]
  x = iPointer(dram, fp32, (k, m), in)
  i = iPointer(dram, int32, (k), in)
  y = iPointer(dram, fp32, (n, m), inout)
  j = iPointer(reg, int32, 4)
  a = iPointer(reg, fp32, 512)
  move.dram.reg.int32 j[0; (4,1); (1,1); rows :k - 4*pid], i[4*pid; (4,1); (1,1); rows :k - 4*pid]
  move.dram.reg.fp32 a[0; (4,128); (128,1); rows :k - 4*pid; cols :m], \
x[4*m*pid; (4,128); (m,1); rows :k - 4*pid; cols :m]
  scatter.fp32 y[0; (1000,128); (m,1); rows :n; cols :m], \
a[0; (4,128); (128,1); rows :k - 4*pid; cols :m], j[0; (4,1); (1,1); rows :k - 4*pid]
}}
"""
#: A copy of n rows of m, in tiles of 16 columns that a unit walks.
WALKED = f"""{HARDWARE}
igraph walked on h parallel (n, 1) {{
  size n = [1, 1000]
  size m = [1, 60]
  x = iPointer(dram, fp32, (n, m), in)
  y = iPointer(dram, fp32, (n, m), out)
  a = iPointer(reg, fp32, 16)
  for t in 4 {{
    move.dram.reg.fp32 a[0; (1,16); (16,1); cols :m - 16*t], x[m*pid + 16*t; (1,16); (16,1); cols :m - 16*t]
    move.reg.dram.fp32 y[m*pid + 16*t; (1,16); (16,1); cols :m - 16*t], a[0; (1,16); (16,1); cols :m - 16*t]
  }}
}}
"""
#: ROWS of n * m rows, which are one size.
JOINED = (
    ROWS.replace("igraph rows", "igraph joined")
    .replace("n - 4", "n_times_m - 4")
    .replace("(n ", "(n_times_m ")
    .replace("(n,", "(n_times_m,")
    .replace("size n", "size n_times_m")
)

#: All of them, right.
GRAPHS = (ROWS, FLAT, PHASES, OPEN_ROWS, TURNED, OPEN_TABLE, OPEN_UPDATE, WALKED, JOINED)


@attrs.frozen
class SizedFault:
    """One planted fault.

    Attributes
    ----------
    text, old, new : str
        A graph that is right, and what of it is something else.
    rule : str
        What finds it.
    size : int or tuple of int
        The least size at which it shows, or the least sizes.
    right_at : tuple
        Sizes at which the graph is right all the same.
    """

    text: str
    old: str
    new: str
    rule: str
    size: int | tuple[int, ...]
    right_at: tuple[int | tuple[int, ...], ...] = ()

    @property
    def graph(self) -> IGraph:
        """The graph with the fault."""
        assert self.old in self.text
        return parse_igraph(self.text.replace(self.old, self.new))

    def sizes(self, values: int | tuple[int, ...]) -> dict[str, int]:
        """Values by the names of the graph's sizes."""
        names = [str(size.name) for size in self.graph.sizes]
        return dict(zip(names, values if isinstance(values, tuple) else (values,), strict=True))


_LOADED = "a[0; (1,512); (512,1); cols :m], x[m*pid; (1,512); (512,1); cols :m]"
_KEPT = "move.reg.dram.fp32 y[m*pid; (1,512); (512,1); cols :m]"

_TOGETHER = """a[0; (4,128); (128,1); rows :n - 4*pid; cols :m], \
x[4*m*pid; (4,128); (m,1); rows :n - 4*pid; cols :m]"""
_STORED = "move.reg.dram.fp32 y[32*pid; (4,8); (8,1); rows :n - 4*pid]"

FAULTS: dict[str, SizedFault] = {
    "for n = 1 alone the row is not written": SizedFault(
        ROWS,
        _STORED,
        _STORED.replace("n - 4*pid", "n - 4*pid - 1 + (n + 998) / 1000"),
        "coverage",
        1,
        (2, 3, 4, 5, 999, 1000),
    ),
    "where 64 does not divide n the last tile reaches too far": SizedFault(
        FLAT, "; cols :n - 64*pid", "", "bounds", 32, (64, 128, 65536)
    ),
    "for the greatest n alone the last row is not written": SizedFault(
        ROWS,
        _STORED,
        _STORED.replace("n - 4*pid", "n - 4*pid - n / 1000"),
        "coverage",
        1000,
        (1, 4, 5, 999),
    ),
    "the last tile has a row too many": SizedFault(
        ROWS, "rows :n - 4*pid", "rows :n - 4*pid + 1", "bounds", 1, (4, 8, 1000)
    ),
    "the last tile has a row too few": SizedFault(
        ROWS, "rows :n - 4*pid", "rows :n - 4*pid - 1", "coverage", 1
    ),
    "with a second group, units of two groups race": SizedFault(
        PHASES, "sync.dram", "sync.sram", "race", 16, (8,)
    ),
    "with no barrier, units race in the first group": SizedFault(
        PHASES,
        "  sync.dram t[0; (1,4096); (4096,1); cols :n], t[0; (1,4096); (4096,1); cols :n]\n",
        "",
        "race",
        8,
    ),
    "where 4 divides n the last tile has no unit": SizedFault(
        ROWS,
        "parallel ((n + 3) / 4, 1)",
        "parallel ((n + 3) / 4 - 1 + ((n % 4) + 3) / 4, 1)",
        "coverage",
        4,
        (1, 2, 3, 5, 999),
    ),
    "from n = 13 the last column that is read is not filled": SizedFault(
        ROWS,
        "  unary.exp.fp32 b[0; (4,8); (8,1); rows :n - 4*pid], a[0",
        "  fill.fp32 b[0; (1,8); (8,1); cols :8 - n / 13] [value=0.0]\n"
        "  unary.exp.fp32 a[0; (1,8); (8,1)], b[0; (1,8); (8,1)]\n"
        "  unary.exp.fp32 b[0; (4,8); (8,1); rows :n - 4*pid], a[0",
        "uninitialised",
        13,
        (1, 12),
    ),
    "a row ends one element too late": SizedFault(
        OPEN_ROWS, _LOADED, _LOADED.replace(":m", ":m + 1"), "bounds", (1, 1)
    ),
    "a row ends one element too soon": SizedFault(
        OPEN_ROWS, _KEPT, _KEPT.replace(":m]", ":m - 1]"), "coverage", (1, 1)
    ),
    "the longest row alone is not written whole": SizedFault(
        OPEN_ROWS, _KEPT, _KEPT.replace(":m]", ":m - m / 300]"), "coverage", (1, 300), ((1, 1), (7, 299))
    ),
    "a row of one element alone is not written": SizedFault(
        OPEN_ROWS, _KEPT, _KEPT.replace(":m]", ":m - 1 + (m + 298) / 300]"), "coverage", (1, 1), ((7, 2),)
    ),
    "from the second row on the wrong one is read": SizedFault(
        OPEN_ROWS, "x[m*pid", "x[m*pid + m", "bounds", (1, 1)
    ),
    "two units write a row": SizedFault(
        OPEN_ROWS, "y[m*pid", "y[m*(pid / 2)", "coverage", (2, 1), ((1, 1), (1, 300))
    ),
    "the index of one dimension goes to another": SizedFault(
        OPEN_ROWS, "x[m*pid", "x[n*pid", "bounds", (258, 1), ((1, 1), (1, 300))
    ),
    "of a tile every other row is read": SizedFault(
        TURNED, "(m,1)", "(2*m,1)", "bounds", (2, 1), ((1, 1), (1, 100))
    ),
    "of a tile every other column is written": SizedFault(
        TURNED, "(1,n)", "(1,2*n)", "bounds", (1, 2), ((1, 1), (1000, 1))
    ),
    "rows of the result are columns": SizedFault(
        TURNED, "(1,n)", "(n,1)", "bounds", (2, 1), ((1, 1), (1, 100))
    ),
    "the rows of a tile end in the next row": SizedFault(
        TURNED, _TOGETHER, _TOGETHER.replace(":m", ":m + 1"), "bounds", (1, 1)
    ),
    "a tile is shorter than the longest row": SizedFault(
        OPEN_ROWS, "512", "256", "coverage", (1, 257), ((1, 256), (7, 1))
    ),
    "a table of open width has a row too many": SizedFault(
        OPEN_TABLE,
        "(m,1); rows :n;",
        "(m,1); rows :n + 1;",
        "bounds",
        (1, 1, 1),
        ((1000, 1, 1), (1000, 9, 5)),
    ),
    "rows of a table end one element too soon": SizedFault(
        OPEN_TABLE, "rows :n; cols :m]", "rows :n; cols :m - 1]", "bounds", (1, 1, 1)
    ),
    "of a table every other row is looked up": SizedFault(
        OPEN_TABLE, "(1000,128); (m,1)", "(1000,128); (2*m,1)", "bounds", (2, 1, 1), ((1, 1, 1), (1, 100, 60))
    ),
    "an index too few is loaded": SizedFault(
        OPEN_TABLE,
        "j[0; (4,1); (1,1); rows :k - 4*pid], i[4*pid; (4,1); (1,1); rows :k - 4*pid]",
        "j[0; (4,1); (1,1); rows :k - 1 - 4*pid], i[4*pid; (4,1); (1,1); rows :k - 1 - 4*pid]",
        "uninitialised",
        (1, 1, 1),
    ),
    "an updated table has a row too many": SizedFault(
        OPEN_UPDATE, "rows :n; cols :m]", "rows :n + 1; cols :m]", "bounds", (1, 1, 1), ((1000, 1, 1),)
    ),
    "updated rows reach into the next one": SizedFault(
        OPEN_UPDATE, "rows :n; cols :m]", "rows :n; cols :m + 1]", "bounds", (1, 1, 1)
    ),
    "a loop over columns ends a round too soon": SizedFault(
        WALKED, "for t in 4", "for t in 3", "coverage", (1, 49), ((1, 48), (9, 1), (3, 32))
    ),
    "a loop over columns starts a round too late": SizedFault(
        WALKED, "16*t", "16*(t + 1)", "coverage", (1, 1)
    ),
    "of joined sizes the last row is left out": SizedFault(
        JOINED,
        "y[32*pid; (4,8); (8,1); rows :n_times_m - 4*pid]",
        "y[32*pid; (4,8); (8,1); rows :n_times_m - 1 - 4*pid]",
        "coverage",
        1,
    ),
    "of joined sizes a tile is left out where one row is left": SizedFault(
        JOINED, "(n_times_m + 3) / 4", "(n_times_m + 2) / 4", "coverage", 1, (2, 3, 4)
    ),
}
