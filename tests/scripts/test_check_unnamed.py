# SPDX-License-Identifier: Apache-2.0
"""The check of unnamed namespaces: this tree can be compiled in groups, and a name of two files is found."""

from __future__ import annotations

import pathlib

from scripts import check_unnamed

FIRST = """namespace a {
namespace {

/*! \\brief A type. */
struct Kind {
  int k = 0;
};
constexpr int64_t kRows = 16, kColumns = 8;
const char kText[] = R"(
namespace {
int OfAText() {
)";
using other::Used;

int Twice(int x) {
  int inner = 2;
  return inner * x;
}

void Class::Member() {}

}  // namespace

int Outside() { return 0; }

}  // namespace a
"""
SECOND = """namespace a {
namespace {

class Kind {};
constexpr int kColumns = 4;
using other::Used;
double Twice(double x) { return 2 * x; }
void Another::Member() {}
int inner = 2;
int OfAText() { return 0; }
int Outside() { return 0; }

}  // namespace
}  // namespace a
"""


def test_files_of_the_tree_can_be_compiled_together() -> None:
    folders = check_unnamed.folders_of((check_unnamed.ROOT / "CMakeLists.txt").read_text())
    assert all(list((check_unnamed.ROOT / "src" / folder).glob("*.cc")) for folder in folders)
    assert list(check_unnamed.faults(check_unnamed.ROOT / "src", folders)) == []


def test_names_of_two_files_are_said(tmp_path: pathlib.Path) -> None:
    """Types, constants of one line and overloads; not members, names of texts, nor what stands outside."""
    for name, text in {
        "in/first.cc": FIRST,
        "in/second.cc": SECOND,
        "in/third.cc": SECOND.replace("namespace a", "namespace b"),
        "apart/first.cc": FIRST,
    }.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    folders = check_unnamed.folders_of("set(UIR_UNITY_FOLDERS in\n    apart)")
    both = "is declared in first.cc, second.cc"
    expected = [f"in: a::(unnamed)::{name} {both}" for name in ("Kind", "kColumns", "Twice")]
    assert list(check_unnamed.faults(tmp_path, folders)) == expected
