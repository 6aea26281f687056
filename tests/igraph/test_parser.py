# SPDX-License-Identifier: Apache-2.0
"""Every kind of malformed text ends in an error that points at the fault."""

from __future__ import annotations

import pytest
from uir_tvm.errors import ParseError
from uir_tvm.igraph import parse_igraph, print_igraph

HARDWARE = """\
hardware host { kind = cpu  num_groups = 2  num_units = 1  reg_bytes = 64  sram_bytes = 0  vector_bytes = 64 }
"""
GRAPH = """\
igraph g on host parallel (2, 1) {
  a = iPointer(dram, fp32, 64, in)   # comments are skipped
  b = iPointer(reg, fp32, 8)
  for i in 4 [unroll=2] {
    move.dram.reg.fp32 b[0; (1,8); (8,1)], a[32*pid + 8*i; (1,8); (8,1)]
    unary.muls.fp32 b[0; (1,8); (8,1)], b[0; (1,8); (8,1)] [2.0]
  }
}
"""


def test_the_unbroken_text_parses() -> None:
    graph = parse_igraph(HARDWARE + GRAPH)
    assert [p.name for p in graph.params] == ["a"]
    assert len(list(graph.walk())) == 2


def test_the_hardware_model_may_come_from_the_caller() -> None:
    graph = parse_igraph(HARDWARE + GRAPH)
    assert parse_igraph(GRAPH, graph.hardware) == graph


def test_spaces_and_lines_do_not_matter() -> None:
    graph = parse_igraph(HARDWARE + GRAPH)
    text = print_igraph(graph)
    assert parse_igraph(text.replace("\n", " \n\t ")) == graph
    assert parse_igraph(" ".join(text.split())) == graph


def test_a_loop_has_any_number_of_attributes() -> None:
    graph = parse_igraph(HARDWARE + GRAPH.replace("[unroll=2]", "[unroll=2, stages=3]"))
    (loop,) = graph.body
    assert dict(loop.attrs) == {"unroll": 2, "stages": 3}
    assert parse_igraph(print_igraph(graph)) == graph


#: (what is replaced, by what, words of the message, text at which the error points)
FAULTS = [
    ("unary.muls", "unery.muls", "no iOp 'unery'", "unery.muls"),
    ("unary.muls", "unary.mulz", "'mulz' is no name", "unary.mulz"),
    ("unary.muls.fp32", "unary.muls.fp33", "'fp33' is no dtype", "unary.muls.fp33"),
    ("unary.muls.fp32", "unary.muls", "does not have the form unary.NAME.DTYPE", "unary.muls b"),
    ("move.dram.reg", "move.reg.dram", "lies in dram", "move.reg"),
    ("(reg, fp32, 8)", "(reg, float, 8)", "is not a dtype", "float, 8"),
    ("(reg, fp32, 8)", "(rag, fp32, 8)", "is not a level", "rag"),
    ("(reg, fp32, 8)", "(reg, fp32, 8, input)", "is not a role", "input"),
    ("(reg, fp32, 8)", "(reg, fp32, big)", "must be an integer", "big"),
    ("b = iPointer", "a = iPointer", "two pointers named a", "a = iPointer(reg"),
    ("a[32*pid", "c[32*pid", "no pointer 'c'", "c[32"),
    ("32*pid", "i*pid", "not affine", "*pid"),
    ("32*pid", "pid / i", "positive constant", "i + 8"),
    ("32*pid", "32*", "integer, a variable", "+ 8"),
    ("32*pid", "(32*pid", "')' is missing", "; (1,8); (8,1)]\n    unary"),
    ("8*i; (1,8); (8,1)]", "8*i; (1,8)]", "';' is missing after the shape", "]\n    unary"),
    ("8*i; (1,8); (8,1)]", "8*i; (1,8); (8,1); lines 1:]", "is not an axis", "lines"),
    (", b[0; (1,8); (8,1)] [2.0]", " [2.0]", "takes 2 slices, not 1", "unary"),
    (" [2.0]", "", "takes 1 params, not 0", "unary"),
    ("[2.0]", "[2.0, 3.0]", "takes 1 params, not 2", "unary"),
    ("[2.0]", "[alpha=2.0]", "no attribute 'alpha'", "alpha"),
    ("8*i; (1,8); (8,1)]\n", "8*i; (1,8); (8,1)] [pad=0.0, pad=1.0]\n", "no attribute 'pad' here", "pad=1.0"),
    ("[2.0]", "[two]", "A number is missing", "two"),
    ("for i in 4", "for i in n", "must be an integer", "n [unroll"),
    ("for i in", "for i on", "'in' is missing", "on 4"),
    ("unroll=2", "unroll 2", "'=' is missing", "2] {"),
    ("on host", "on guest", "no hardware model 'guest'", "guest"),
    ("# comments", "$ comments", "'$' has no meaning", "$"),
]


@pytest.mark.parametrize(("old", "new", "message", "at"), FAULTS, ids=[f[2] for f in FAULTS])
def test_faults_are_pointed_at(old: str, new: str, message: str, at: str) -> None:
    assert old in GRAPH
    text = GRAPH.replace(old, new, 1)
    with pytest.raises(ParseError) as caught:
        parse_igraph(HARDWARE + text)
    error = caught.value
    assert message in error.what
    lines = (HARDWARE + text).split("\n")
    here = "\n".join(lines[error.line - 1 :])[error.column - 1 :]
    assert here.startswith(at), f"points at {here[:30]!r}"
    source, caret = error.where.split("\n")[1:]
    assert source[4:] == lines[error.line - 1]
    assert caret.index("^") == error.column - 1 + 4


def test_missing_brace_points_at_the_end() -> None:
    with pytest.raises(ParseError, match="'}' is missing at the end of the graph") as caught:
        parse_igraph(HARDWARE + GRAPH.rstrip()[:-1])
    assert caught.value.line == (HARDWARE + GRAPH).count("\n") - 1


def test_trailing_text_is_refused() -> None:
    with pytest.raises(ParseError, match="trailing text after the graph: 'igraph'"):
        parse_igraph(HARDWARE + GRAPH + GRAPH)


def test_pointers_are_not_declared_in_loops() -> None:
    with pytest.raises(ParseError, match="inside a loop"):
        parse_igraph(HARDWARE + GRAPH.replace("    move", "    c = iPointer(reg, fp32, 8)\n    move"))


@pytest.mark.parametrize("old", ["    move", "  for i"])
def test_an_attribute_has_a_name_and_belongs_to_the_graph(old: str) -> None:
    named = HARDWARE + GRAPH.replace(old, "  attr depth = 3\n" + old)
    if old == "  for i":
        assert dict(parse_igraph(named).attrs) == {"depth": 3}
    else:
        with pytest.raises(ParseError, match="no iOp 'attr'"):
            parse_igraph(named)
    with pytest.raises(ParseError, match="no iOp 'attr'"):
        parse_igraph(HARDWARE + GRAPH.replace(old, "  attr 3\n" + old))


@pytest.mark.parametrize("field", ["kind = cpu", "reg_bytes = 64"])
def test_incomplete_hardware_is_refused(field: str) -> None:
    with pytest.raises(ParseError, match=f"lacks {field.split()[0]}"):
        parse_igraph(HARDWARE.replace(field, "") + GRAPH)


def test_unknown_hardware_field_is_refused() -> None:
    with pytest.raises(ParseError, match="no field 'cores'"):
        parse_igraph(HARDWARE.replace("kind", "cores = 2 kind") + GRAPH)


@pytest.mark.parametrize(
    "text", ["", "igraph", "igraph g on", "hardware host {", "{", '"', "igraph g on h parallel (1"]
)
def test_fragments_end_in_parse_errors(text: str) -> None:
    with pytest.raises(ParseError):
        parse_igraph(text)
