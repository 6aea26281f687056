# SPDX-License-Identifier: Apache-2.0
"""Random kernels: nested loops, many pipes, buffers that alternate, places that are used again."""

from __future__ import annotations

from hypothesis import strategies as st
from uir_tvm.igraph import Affine, affine, var

from .kernel import Data, at, loop, op

#: Pipes by vocabulary; those that are used more stand there more often.
PIPES = {"ascend": ["MTE2", "V", "V", "MTE3", "S"], "bang": ["IO", "IO", "MOVE", "COMPUTE"]}
#: A kernel runs at most so many iterations of its innermost loops, all counted.
MOST = 120


@st.composite
def kernels(draw: st.DrawFn, periodic: bool = True, vocabulary: str = "ascend") -> list[Data]:
    """Loops and instructions.

    Parameters
    ----------
    periodic : bool
        Only addresses that repeat; else also some that move on with the iterations, by steps or linearly.
    """
    names = iter(range(1000))

    def address(around: list[tuple[str, int]]) -> Affine:
        begin = affine(8 * draw(st.integers(0, 5)))
        if not around:
            return begin
        (outer, _), (inner, extent) = around[0], around[-1]
        ways = ["none", "alternate", "alternate", "third", "nested"]
        way = draw(st.sampled_from(ways if periodic else [*ways, "linear", "steps"]))
        one = var(draw(st.sampled_from([outer, inner])))
        if way == "alternate":
            begin = begin + draw(st.sampled_from([8, 16])) * ((one + draw(st.integers(0, 1))) % 2)
        elif way == "third":
            begin = begin + 8 * (one % 3)
        elif way == "nested" and len(around) > 1:
            begin = begin + 8 * ((var(around[-2][0]) * extent + var(inner)) % 2)
        elif way == "linear":
            begin = begin + draw(st.sampled_from([4, 8])) * one
        elif way == "steps":
            begin = begin + 8 * (one // 2)
        return begin

    def region(around: list[tuple[str, int]]) -> Data:
        memory = draw(st.sampled_from(["ub", "ub", "ub", "x", "y"]))
        dims = [(draw(st.integers(2, 3)), draw(st.sampled_from([8, 16, 20])))]
        return at(
            address(around),
            draw(st.sampled_from([4, 8, 8, 16, 24])),
            memory,
            draw(st.sampled_from([[], [], dims])),
        )

    def body(around: list[tuple[str, int]], times: int) -> list[Data]:
        nodes: list[Data] = []
        for _ in range(draw(st.integers(1, 4))):
            if len(around) < 3 and draw(st.integers(0, 3)) == 0:
                extent = draw(st.sampled_from([0, 1, 2, 3, 4, 5, 8, 12]))
                extent = min(extent, max(1, MOST // times))
                name = f"k{next(names)}"
                nodes.append(loop(name, extent, *body([*around, (name, extent)], times * max(extent, 1))))
                continue
            writes = [region(around) for _ in range(draw(st.integers(0, 1)))]
            reads = [region(around) for _ in range(draw(st.integers(0, 2)))]
            pipe = draw(st.sampled_from(PIPES[vocabulary]))
            nodes.append(op(pipe, writes, reads, blocks=pipe == "S" and draw(st.booleans())))
        return nodes

    return body([], 1)
