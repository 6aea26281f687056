# SPDX-License-Identifier: Apache-2.0
"""What the printer may print of Ascend C: its table (src/codegen/ascend/api_table.cc) as data and as text.

The printer prints nothing that has no row there; each row says where the vendor's public headers and
documentation have it for dav-2201 (Ascend 910B).
"""

from __future__ import annotations

import attrs

from ..apis import Api, page, rows

__all__ = ["EVENTS", "Api", "Events", "markdown", "table"]


@attrs.frozen
class Events:
    """Event ids that a vendor's function takes from the TPipe in its own body.

    Attributes
    ----------
    name : str
        The function or type.
    pair : str
        The pipes of the flag, as HardEvent names them.
    ids : str
        Which ids; ``first free`` is the lowest that nobody has allocated.
    cores : str
        The cores on which it does.
    source : str
        The header of the vendor's that shows it (repository mirror-cann/asc-devkit, impl/).
    """

    name: str
    pair: str
    ids: str
    cores: str
    source: str


#: What a search for FetchEventID, AllocEventID, SetFlag and set_flag in impl/basic_api and dav_c220 finds.
#: Of all functions that the printer may print only TPipe has a row.  Ids of a text are static, since it
#: allocates none, and are 0 to 5; those of M_MTE1 begin at 3 on cube cores.
EVENTS: tuple[Events, ...] = (
    Events("TPipe", "M_MTE1", "0 1 2", "cube", "basic_api/kernel_tpipe_impl.h, TPipe::Init"),
    Events("TQue.EnQue", "of the queue", "first free", "all", "basic_api/kernel_tpipe_impl.h"),
    Events("TQue.FreeTensor", "of the queue, back", "first free", "all", "basic_api/kernel_tpipe_impl.h"),
    Events(
        "CreateVecIndex",
        "S_V",
        "first free",
        "vector",
        "basic_api/dav_c220/kernel_operator_vec_createvecindex_impl.h",
    ),
    Events(
        "ReduceSum, ReduceMax, ReduceMin",
        "V_S S_V S_MTE3",
        "first free",
        "vector",
        "basic_api/dav_c220/kernel_operator_vec_reduce_impl.h",
    ),
    Events(
        "SyncAll with a workspace",
        "MTE2_S S_MTE3 MTE3_MTE2 S_MTE2",
        "first free",
        "vector",
        "basic_api/dav_c220/kernel_operator_sync_impl.h",
    ),
    Events(
        "TransDataTo5HD with lists in LocalTensors",
        "S_V",
        "first free",
        "vector",
        "basic_api/kernel_operator_vec_transpose_intf_impl.h",
    ),
    Events(
        "DataCopy from UB to L1",
        "V_MTE3",
        "first free",
        "vector",
        "basic_api/dav_c220/kernel_operator_data_copy_impl.h",
    ),
    Events(
        "InitOutput, Fill of global memory",
        "V_MTE3",
        "first free",
        "vector",
        "basic_api/kernel_operator_common_intf_impl.h",
    ),
)


_HEAD = """\
# Ascend C that the printer prints

Every vendor function, type and enumeration that `uir-ascend` may print, with the element types that it takes
on dav-2201 (Ascend 910B). The printer reads this table (`src/codegen/ascend/api_table.cc`) and can print
nothing else: a dtype that a row lacks is a `CodegenError`. `T`, `U` are element types, `LT` and `GT` local
and global tensors; a range behind a parameter's type is what an integer literal is held to; modes stand
behind the types they go with.

Under *toolkits* stand the versions of the headers that have a row, and what some call it: the vendor renamed
functions in CANN 9.0 and 9.1 (repository mirror-cann/asc-devkit, tags v8.5.0, v9.0.0, v9.0.1, branch 9.1.0,
and the list of changed interfaces in its documentation). The names of 8 are declared by all releases from
7.0 to 9.1, the newer ones calling them deprecated; they are the default. `uir compile --cann 9.0|9.1` prints
the later ones, with their parameters in the later order, which earlier toolkits do not have.

This page is made by `python -m uir_tvm.target.ascend.apis`.
"""


def table() -> list[Api]:
    """All rows, in the order of the table."""
    return rows("uir.codegen.ascend.apis")


def markdown() -> str:
    """The table as a page of documentation, with the ids that vendor's functions take."""
    lines = [
        "",
        "## Event ids of the vendor's own",
        "",
        "Functions that take ids from the `TPipe` in their own bodies. Of these the printer prints `TPipe`",
        "alone, and keeps clear of its ids; the host model finds a text whose static ids meet those that a",
        "`TPipe`, a queue or `CreateVecIndex` takes.",
        "",
        "| function | flag | ids | cores | seen in |",
        "|---|---|---|---|---|",
        *(f"| `{e.name}` | {e.pair} | {e.ids} | {e.cores} | {e.source} |" for e in EVENTS),
    ]
    return page(_HEAD, table()) + "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(markdown(), end="")
