# SPDX-License-Identifier: Apache-2.0
"""Tidying: every rule keeps every bit on adversarial values, and what would not is left alone."""

from __future__ import annotations

import numpy as np
import pytest
from uir_tvm.igraph import HardwareModel, IGraph, interpreter, parse_igraph
from uir_tvm.igraph.dtypes import DTYPES, numpy_of
from uir_tvm.optimize import simplify, simplify_fast_math, simplify_rules
from uir_tvm.optimize.made_values import Definitions
from uir_tvm.verify import verify

from .equal import assert_same_bits

HARDWARE = HardwareModel("host", "cpu", 1, 1, 2**26, 0, 64, {})
FLOATS = ("fp64", "fp32", "fp16", "bf16", "fp8e4m3", "fp8e5m2")
INTS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
SIGNED = ("int8", "int16", "int32", "int64")
NUMBERS = (*FLOATS, *INTS)
WITH_INFINITY = tuple(d for d in FLOATS if d != "fp8e4m3")


def values(dtype: str, seed: int = 0) -> np.ndarray:
    """Every value of a narrow dtype; of wide ones the corners and random bits.  NaN is the quiet one."""
    row, kind = numpy_of(dtype), DTYPES[dtype].kind
    if kind == "bool":
        return np.tile(np.array([False, True]), 8)
    rng = np.random.default_rng(seed)
    if row.itemsize <= 2:
        found = np.arange(256**row.itemsize, dtype=f"u{row.itemsize}").view(row)
    else:
        found = rng.integers(0, 256, 4096 * row.itemsize, dtype=np.uint8).view(row).copy()
    if kind == "float":
        corners = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 1.5, 2.0, 3.0, 0.1, -0.1])
        if row.itemsize > 2:
            info = np.finfo(row)
            edges = [
                info.max,
                info.min,
                info.tiny,
                -info.tiny,
                info.smallest_subnormal,
                -info.smallest_subnormal,
            ]
            ties = 1.0 + np.arange(4096) * 2.0 ** (-info.nmant // 2 - 1)
            found = np.concatenate([found, np.array(edges, row), corners.astype(row), ties.astype(row)])
        with np.errstate(invalid="ignore"):  # patterns of signalling NaN
            found = np.where(np.isnan(found.astype(np.float64)), row.type(np.nan), found)
    return rng.permutation(found)


def program(dtype: str, lines: list[str], result: str = "", count: int = 0) -> IGraph:
    """A graph that loads ``a``, ``b`` (and the bool ``m``), runs the lines and stores ``z``.

    In a line, ``D`` is the dtype and a name in braces that register, whole.  Registers are of the dtype
    but for ``m``, ``n`` (bool), ``z`` (``result``) and ``w_DTYPE``.
    """
    n, result = count or len(values(dtype)), result or dtype
    text = "\n".join(lines)
    box = f"[0; (1,{n}); ({n},1)]"
    names = {
        "a": dtype,
        "b": dtype,
        "c": dtype,
        "d": dtype,
        "e": dtype,
        "z": result,
        "m": "bool",
        "n": "bool",
    }
    names |= {f"w_{d}": d for d in DTYPES}
    used = {k: d for k, d in names.items() if "{" + k + "}" in text or k == "z"}
    params = [k for k in ("a", "b", "m") if k in used]
    out = [f"x_{k} = iPointer(dram, {used[k]}, {n}, in)" for k in params]
    out.append(f"y = iPointer(dram, {result}, {n}, out)")
    out += [f"{k} = iPointer(reg, {d}, {n})" for k, d in used.items()]
    out += [f"move.dram.reg.{used[k]} {k}{box}, x_{k}{box}" for k in params]
    out += [
        line.replace("D ", f"{dtype} ").replace("D.", f"{dtype}.").format(**{k: k + box for k in used})
        for line in lines
    ]
    out.append(f"move.reg.dram.{result} y{box}, z{box}")
    body = "\n".join(out)
    graph = parse_igraph(f"igraph g on host parallel (1, 1) {{\n{body}\n}}", HARDWARE)
    verify(graph)
    return graph


def inputs(graph: IGraph) -> list[np.ndarray]:
    found = []
    for k, p in enumerate(q for q in graph.params if q.role != "out"):
        pool = values(p.dtype, seed=k)
        found.append(
            np.resize(pool, p.size) if p.dtype != "bool" else np.random.default_rng(k).random(p.size) < 0.5
        )
    return found


def same_bits(before: IGraph, after: IGraph) -> None:
    assert_same_bits(before, after, inputs(before))


def with_rule(graph: IGraph, name: str, rules: tuple = simplify_rules.RULES) -> IGraph | None:
    """The graph after one rule alone (and what it needs copies for); None where it says nothing."""
    (rule,) = (r for r in rules if r.name == name)
    walk = simplify._SimplifyWalk([rule])
    body = walk.body(graph.body, Definitions())
    return graph.replace(body=body) if walk.changed else None


UNARY = "unary.{}.D {{z}}, {{a}}"
#: rule -> (dtypes, lines, dtype of the result) of programs in which it has something to do.
EXAMPLES: dict[str, list[tuple[tuple[str, ...], list[str], str]]] = {
    "f(y) with y a copy of x": [
        (("fp32", "int8", "bool"), ["move.reg.reg.D {c}, {a}", "select.D {z}, {m}, {c}, {a}"], ""),
        (("fp16",), ["move.reg.reg.D {c}, {a}", "unary.exp.D {z}, {c}"], ""),
    ],
    "x * 1": [(NUMBERS, ["unary.muls.D {z}, {a} [1.0]"], "")],
    "x / 1": [(FLOATS, ["unary.divs.D {z}, {a} [1.0]"], "")],
    "x - 0": [(NUMBERS, ["unary.subs.D {z}, {a} [0.0]"], "")],
    "x + (-0.0)": [(FLOATS, ["unary.adds.D {z}, {a} [-0.0]"], "")],
    "x + 0 (integers)": [(INTS, ["unary.adds.D {z}, {a} [0]"], "")],
    "x ** 1 (integers)": [(INTS, ["unary.pows.D {z}, {a} [1]"], "")],
    "max(x, lowest)": [
        (WITH_INFINITY, ["unary.maxs.D {z}, {a} [-inf]"], ""),
        (("int8",), ["unary.maxs.D {z}, {a} [-128]"], ""),
        (("uint16",), ["unary.maxs.D {z}, {a} [0]"], ""),
    ],
    "min(x, highest)": [
        (WITH_INFINITY, ["unary.mins.D {z}, {a} [inf]"], ""),
        (("int16",), ["unary.mins.D {z}, {a} [32767]"], ""),
    ],
    "copy(x), abs and relu of unsigned": [
        ((*NUMBERS, "bool"), ["unary.copy.D {z}, {a}"], ""),
        (("uint8",), ["unary.abs.D {c}, {a}", "unary.relu.D {z}, {c}"], ""),
    ],
    "neg(neg(x)), not(not(x))": [
        ((*FLOATS, *SIGNED), ["unary.neg.D {c}, {a}", "unary.neg.D {z}, {c}"], ""),
        ((*INTS, "bool"), ["unary.not.D {c}, {a}", "unary.not.D {z}, {c}"], ""),
    ],
    "f(f(x)), f one of abs relu floor ceil round trunc sign": [
        (FLOATS, [f"unary.{f}.D {{c}}, {{a}}", f"unary.{f}.D {{z}}, {{c}}"], "")
        for f in ("abs", "relu", "floor", "ceil", "round", "trunc", "sign")
    ],
    "abs(neg(x))": [((*FLOATS, *SIGNED), ["unary.neg.D {c}, {a}", "unary.abs.D {z}, {c}"], "")],
    "m*(n*x + a) + b (integers)": [
        (INTS, ["unary.adds.D {c}, {a} [100]", "unary.adds.D {z}, {c} [99]"], ""),
        (INTS, ["unary.muls.D {c}, {a} [7]", "unary.muls.D {z}, {c} [101]"], ""),
        (SIGNED, ["unary.rsubs.D {c}, {a} [5]", "unary.subs.D {z}, {c} [-77]"], ""),
        (SIGNED, ["unary.neg.D {c}, {a}", "unary.rsubs.D {z}, {c} [3]"], ""),
    ],
    "x as its own dtype": [((*NUMBERS, "bool"), ["cast.D.D {z}, {a}"], "")],
    "(C)(B)x, B holding every value of the dtype A of x": [
        ((a,), [f"cast.D.{b} {{w_{b}}}, {{a}}", f"cast.{b}.{c} {{z}}, {{w_{b}}}"], c)
        for a, b, c in (
            ("fp32", "fp64", "fp32"), ("fp16", "fp32", "fp16"), ("bf16", "fp32", "bf16"),
            ("fp8e4m3", "fp16", "fp8e4m3"), ("fp8e5m2", "fp16", "fp8e5m2"), ("int8", "int32", "int8"),
            ("uint8", "int16", "uint8"), ("int32", "fp64", "int32"), ("int16", "fp32", "int16"),
            ("bool", "int8", "bool"), ("bool", "fp16", "fp32"), ("int8", "bf16", "int8"),
            ("int8", "int32", "fp32"), ("fp16", "fp32", "bf16"), ("fp16", "fp32", "int32"),
            ("fp32", "fp64", "bool"), ("fp32", "fp64", "fp16"), ("int16", "fp64", "fp32"),
        )
    ],
    "x op x": [
        (NUMBERS, ["binary.max.D {z}, {a}, {a}"], ""),
        (NUMBERS, ["binary.min.D {z}, {a}, {a}"], ""),
        ((*INTS, "bool"), ["binary.and.D {z}, {a}, {a}"], ""),
        ((*INTS, "bool"), ["binary.xor.D {z}, {a}, {a}"], ""),
        (INTS, ["binary.sub.D {z}, {a}, {a}"], ""),
        (NUMBERS, ["compare.lt.D {z}, {a}, {a}"], "bool"),
        (NUMBERS, ["compare.gt.D {z}, {a}, {a}"], "bool"),
        ((*INTS, "bool"), ["compare.eq.D {z}, {a}, {a}"], "bool"),
    ],
    "x op c, c op x with c filled": [
        (NUMBERS, ["fill.D {c} [3]", f"binary.{f}.D {{z}}, {{a}}, {{c}}"], "")
        for f in ("add", "sub", "mul", "max", "min")
    ] + [
        (FLOATS, ["fill.D {c} [0.1]", f"binary.{f}.D {{z}}, {{c}}, {{a}}"], "")
        for f in ("add", "sub", "mul", "div", "max", "min")
    ] + [
        (FLOATS, ["fill.D {c} [-0.0]", f"binary.{f}.D {{z}}, {{a}}, {{c}}"], "")
        for f in ("add", "sub", "mul", "div")
    ],
    "x ** 0": [(NUMBERS, ["unary.pows.D {z}, {a} [0]"], "")],
    "x ** 2 (not fp64)": [((*INTS, *FLOATS[1:]), ["unary.pows.D {z}, {a} [2]"], "")],
    "x / 2**k": [
        (FLOATS, ["unary.divs.D {z}, {a} [8.0]"], ""),
        (FLOATS, ["unary.divs.D {z}, {a} [-0.25]"], ""),
        (FLOATS[:2], ["unary.divs.D {z}, {a} [1.2676506002282294e30]"], ""),
    ],
    "m ? a : b, a = b or m constant": [
        ((*NUMBERS, "bool"), ["select.D {z}, {m}, {a}, {a}"], ""),
        (("fp32",), ["fill.bool {n} [true]", "select.D {z}, {n}, {a}, {b}"], ""),
        (("fp32",), ["fill.bool {n} [false]", "select.D {z}, {n}, {a}, {b}"], ""),
        (("fp32",), ["fill.D {c} [2]", "fill.D {d} [2]", "select.D {z}, {m}, {c}, {d}"], ""),
    ],
    "not(m) ? a : b": [(("fp32", "int8"), ["unary.not.bool {n}, {m}", "select.D {z}, {n}, {a}, {b}"], "")],
    "f of constants": [
        (FLOATS, ["fill.D {c} [0.3]", "fill.D {d} [7.5]", "binary.div.D {z}, {c}, {d}"], ""),
        (FLOATS, ["fill.D {c} [0.3]", "unary.sqrt.D {z}, {c}"], ""),
        (INTS, ["fill.D {c} [100]", "unary.muls.D {z}, {c} [77]"], ""),
        (INTS, ["fill.D {c} [100]", "unary.pows.D {z}, {c} [3]"], ""),
        (("fp32",), ["fill.D {c} [0.1]", "cast.D.fp16 {z}, {c}"], "fp16"),
        (("fp32",), ["fill.D {c} [nan]", "compare.ne.D {z}, {c}, {c}"], "bool"),
        (("int32",), ["fill.D {c} [7]", "move.reg.reg.D {z}, {c}"], ""),
    ],
    "iota with steps 0": [
        (NUMBERS, ["iota.D {z} [base=37, row_step=0, col_step=0]"], ""),
        (NUMBERS, ["iota.D {z} [col_step=0]"], ""),
    ],
}  # fmt: skip


def test_every_rule_has_an_example():
    """Transposition needs another shape: it has a test of its own."""
    assert set(EXAMPLES) == {r.name for r in simplify_rules.RULES} - {"transpose(transpose(x))"}


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_rule_keeps_every_bit(name):
    for dtypes, lines, result in EXAMPLES[name]:
        for dtype in dtypes:
            before = program(dtype, lines, result)
            alone = with_rule(before, name)
            assert alone is not None, (dtype, lines)
            for after in (alone, simplify.run(before)):
                verify(after)
                same_bits(before, after)


#: What looks like one of the rules and is none: (dtype, lines, dtype of the result).
NOT_TIDIED = {
    "-0 + 0 is +0": ("fp32", ["unary.adds.D {z}, {a} [0.0]"], ""),
    "-0 - (-0) is +0": ("fp32", ["unary.subs.D {z}, {a} [-0.0]"], ""),
    "no infinity in fp8e4m3": ("fp8e4m3", ["unary.maxs.D {z}, {a} [-inf]"], ""),
    "inf - inf is NaN": ("fp32", ["binary.sub.D {z}, {a}, {a}"], ""),
    "NaN differs from itself": ("fp32", ["compare.eq.D {z}, {a}, {a}"], "bool"),
    "0 * NaN is NaN": ("fp32", ["unary.muls.D {z}, {a} [0.0]"], ""),
    "a third is no power of two": ("fp32", ["unary.divs.D {z}, {a} [3.0]"], ""),
    "2**-20 is no fp8": ("fp8e5m2", ["unary.divs.D {z}, {a} [1048576.0]"], ""),
    "fp64 powers round otherwise": ("fp64", ["unary.pows.D {z}, {a} [2]"], ""),
    "two roundings of sums": ("fp32", ["unary.adds.D {c}, {a} [0.1]", "unary.adds.D {z}, {c} [0.2]"], ""),
    "a narrowing cast rounds": ("fp32", ["cast.D.fp16 {w_fp16}, {a}", "cast.fp16.D {z}, {w_fp16}"], ""),
    "int32 does not fit fp32": ("int32", ["cast.D.fp32 {w_fp32}, {a}", "cast.fp32.D {z}, {w_fp32}"], ""),
    "max of zeros gives either": ("fp32", ["fill.D {c} [0.0]", "binary.max.D {z}, {a}, {c}"], ""),
    "exp differs between targets": ("fp32", ["fill.D {c} [0.3]", "unary.exp.D {z}, {c}"], ""),
    "0/0 is not folded": ("fp32", ["fill.D {c} [0.0]", "unary.divs.D {z}, {c} [0.0]"], ""),
    "a directed rounding to a narrow float": (
        "bf16", ["cast.D.fp32 {w_fp32}, {a}", "cast.fp32.fp16 {z}, {w_fp32} [round=floor]"], "fp16",
    ),
    "the copy is stale": (
        "fp32", ["move.reg.reg.D {c}, {a}", "unary.exp.D {a}, {a}", "binary.add.D {z}, {a}, {c}"], "",
    ),
    "the mask is overwritten": (
        "fp32", ["fill.bool {n} [true]", "compare.lt.D {n}, {a}, {b}", "select.D {z}, {n}, {a}, {b}"], "",
    ),
    "the inner neg is overwritten": (
        "fp32",
        [
            "unary.neg.D {c}, {a}", "unary.exp.D {a}, {a}", "unary.neg.D {d}, {c}",
            "binary.add.D {z}, {a}, {d}",
        ],
        "",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", NOT_TIDIED)
def test_what_changes_bits_is_left_alone(name):
    graph = program(*NOT_TIDIED[name])
    assert simplify.run(graph) is graph


#: fast_math rule -> programs in which it has something to do.
FAST: dict[str, list[list[str]]] = {
    "x + 0, x - 0, x * 0, 0 - x": [
        ["unary.adds.D {z}, {a} [0.0]"], ["unary.muls.D {z}, {a} [0.0]"], ["unary.rsubs.D {z}, {a} [0.0]"],
    ],
    "x - x, x / x": [["binary.sub.D {z}, {a}, {a}"], ["binary.div.D {z}, {a}, {a}"]],
    "m*(n*x + a) + b": [
        ["unary.adds.D {c}, {a} [0.1]", "unary.subs.D {z}, {c} [0.7]"],
        ["unary.muls.D {c}, {a} [0.1]", "unary.divs.D {z}, {c} [0.7]"],
        ["unary.rsubs.D {c}, {a} [0.1]", "unary.adds.D {z}, {c} [0.7]"],
    ],
    "x / c": [["unary.divs.D {z}, {a} [3.0]"]],
    "x ** 0.5, -0.5, -1, 1, 2": [[f"unary.pows.D {{z}}, {{a}} [{p}]"] for p in (0.5, -0.5, -1.0, 1.0)],
    "1 / sqrt(x)": [["unary.sqrt.D {c}, {a}", "unary.recip.D {z}, {c}"]],
    "x / (1/y)": [["unary.recip.D {c}, {b}", "binary.div.D {z}, {a}, {c}"]],
    "log(exp(x)), log2(exp2(x))": [["unary.exp.D {c}, {a}", "unary.log.D {z}, {c}"]],
}  # fmt: skip


def test_every_fast_rule_has_an_example():
    assert set(FAST) == {r.name for r in simplify_fast_math.RULES}


@pytest.mark.parametrize("name", FAST)
def test_fast_math_is_only_on_request_and_close(name):
    """On numbers between 1/2 and 2 nothing overflows or cancels; a few roundings of 2**-24 each are all that
    may differ, relative to the largest operand."""
    rng = np.random.default_rng(0)
    for lines in FAST[name]:
        before = program("fp32", lines, count=512)
        assert simplify.run(before) is before, lines
        assert with_rule(before, name, simplify_fast_math.RULES) is not None, lines
        after = simplify.run(before, fast_math=True)
        verify(after)
        given = [rng.uniform(0.5, 2, 512).astype("float32") for p in before.params if p.role != "out"]
        (old,), (new,) = interpreter.run(before, *given), interpreter.run(after, *given)
        np.testing.assert_allclose(new, old, rtol=8 * 2.0**-24, atol=8 * 2.0**-24)


def test_transposition_there_and_back_is_a_copy():
    graph = parse_igraph(
        """igraph g on host parallel (1, 1) {
          x = iPointer(dram, fp32, 12, in)
          y = iPointer(dram, fp32, 12, out)
          a = iPointer(reg, fp32, 12)
          b = iPointer(reg, fp32, 12)
          c = iPointer(reg, fp32, 12)
          move.dram.reg.fp32 a[0; (3,4); (4,1)], x[0; (3,4); (4,1)]
          transpose.fp32 b[0; (4,3); (3,1)], a[0; (3,4); (4,1)]
          transpose.fp32 c[0; (3,4); (4,1)], b[0; (4,3); (3,1)]
          move.reg.dram.fp32 y[0; (3,4); (4,1)], c[0; (3,4); (4,1)]
        }""",
        HARDWARE,
    )
    after = simplify.run(graph)
    assert [str(s.pointer.name) for iop, _ in after.walk() for s in iop.sources] == ["x", "a", "a", "a"]
    verify(after)
    same_bits(graph, after)


def test_values_from_before_a_loop_last_unless_the_loop_writes_them():
    text = """igraph g on host parallel (1, 1) {{
          x = iPointer(dram, fp32, 4, in)
          y = iPointer(dram, fp32, 8, out)
          a = iPointer(reg, fp32, 4)
          b = iPointer(reg, fp32, 4)
          c = iPointer(reg, fp32, 4)
          move.dram.reg.fp32 a[0; (1,4); (4,1)], x[0; (1,4); (4,1)]
          fill.fp32 b[0; (1,4); (4,1)] [2.0]
          for k in 2 {{
            binary.mul.fp32 c[0; (1,4); (4,1)], a[0; (1,4); (4,1)], b[0; (1,4); (4,1)]
            {line}
            move.reg.dram.fp32 y[4*k; (1,4); (4,1)], c[0; (1,4); (4,1)]
          }}
        }}"""
    kept = parse_igraph(text.format(line=""), HARDWARE)
    after = simplify.run(kept)
    assert "unary.muls.fp32" in str(after)
    same_bits(kept, after)
    line = "unary.adds.fp32 b[0; (1,4); (4,1)], b[0; (1,4); (4,1)] [1.0]"
    changing = parse_igraph(text.format(line=line), HARDWARE)
    assert simplify.run(changing) is changing


def test_partial_values_do_not_stand_for_whole_ones():
    """Only two of the four elements of ``c`` are the constant."""
    graph = parse_igraph(
        """igraph g on host parallel (1, 1) {
          x = iPointer(dram, fp32, 4, in)
          y = iPointer(dram, fp32, 4, out)
          a = iPointer(reg, fp32, 4)
          c = iPointer(reg, fp32, 4)
          move.dram.reg.fp32 a[0; (1,4); (4,1)], x[0; (1,4); (4,1)]
          move.dram.reg.fp32 c[0; (1,4); (4,1)], x[0; (1,4); (4,1)]
          fill.fp32 c[0; (1,4); (4,1); cols :2] [2.0]
          binary.mul.fp32 a[0; (1,4); (4,1)], a[0; (1,4); (4,1)], c[0; (1,4); (4,1)]
          move.reg.dram.fp32 y[0; (1,4); (4,1)], a[0; (1,4); (4,1)]
        }""",
        HARDWARE,
    )
    verify(graph)
    assert simplify.run(graph) is graph
