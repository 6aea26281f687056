# SPDX-License-Identifier: Apache-2.0
"""What every project with open sizes computes of them (sizes.h, sizes.cpp), compiled and called."""

from __future__ import annotations

import pathlib
import random
import subprocess

import pytest
from uir_tvm.device.text_model import compiler
from uir_tvm.export.arena import ALIGNMENT, ROUND, TAIL, Lifetime, plan
from uir_tvm.export.program_text import FOLDER, PACKAGE
from uir_tvm.export.render import render, template

#: What stands for a device's runtime.
DEVICE = """#include <cstddef>
#include <stdexcept>
#include <string>
namespace project {
struct Failure : std::runtime_error { using std::runtime_error::runtime_error; };
struct Device {};
struct Memory { explicit Memory(size_t) {} void* At(size_t) const { return nullptr; } };
}  // namespace project
"""
#: Reads commands, prints answers.
MAIN = r"""
#include <iostream>
#include "sizes.h"
using namespace project;
const std::vector<std::string>& project::SizeNames() {
  static const std::vector<std::string> names = {"b", "n"};
  return names;
}
int main() {
  for (std::string word; std::cin >> word;) {
    try {
      if (word == "plan") {
        size_t count;
        std::cin >> count;
        std::vector<Span> spans(count);
        for (Span& span : spans) {
          span.shape.resize(1);
          std::cin >> span.shape[0] >> span.item_bytes >> span.first >> span.last;
        }
        const Plan made = Planned({1, 2}, spans, {{Region::kWeights, 512, 7}});
        std::cout << made.arena_bytes;
        for (const Place& place : made.places) std::cout << " " << place.offset;
        const Place& last = made.places.back();
        std::cout << " " << last.elements << (last.region == Region::kWeights) << "\n";
      } else if (word == "need") {
        Need(false, "b < n", {5, 3});
      } else {
        int64_t a, b;
        std::cin >> a >> b;
        if (word == "bytes") {
          std::cout << BytesOf({a, b}, 4) << "\n";
        } else if (word == "int") {
          std::cout << Int(a) << "\n";
        } else {
          std::cout << Div(a, b) << " " << Mod(a, b) << " " << Min(a, b) << " " << Max(a, b) << " "
                    << Blocks(a, b) << "\n";
        }
      }
    } catch (const Failure& error) {
      std::string text = error.what();
      for (char& letter : text) letter = letter == '\n' ? ';' : letter;
      std::cout << "failed: " << text << "\n";
    }
  }
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("sizes")
    fields = {"alignment": str(ALIGNMENT), "round": str(ROUND), "tail": str(TAIL)}
    texts = {name: template(PACKAGE, FOLDER, name) for name in ("sizes.h", "model.h")}
    texts["sizes.cpp"] = render(template(PACKAGE, FOLDER, "sizes.cpp.in"), fields)
    for name, text in {**texts, "device.h": DEVICE, "main.cpp": MAIN}.items():
        (folder / name).write_text(text)
    command = [compiler(), "-std=c++17", "-Wall", "-Wextra", "-Werror", "-o", folder / "run"]
    subprocess.run([*command, folder / "main.cpp", folder / "sizes.cpp"], check=True)
    return folder / "run"


def answers(program: pathlib.Path, *lines: str) -> list[str]:
    done = subprocess.run([program], input="\n".join(lines), capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_quotients_round_down(program: pathlib.Path) -> None:
    """Of negative numbers too, as Python's do."""
    pairs = [(a, b) for a in range(-9, 10) for b in (1, 2, 5)]
    wanted = [f"{a // b} {a % b} {min(a, b)} {max(a, b)} {max(0, min(a, b))}" for a, b in pairs]
    assert answers(program, *(f"of {a} {b}" for a, b in pairs)) == wanted


def test_a_plan_of_a_run_is_that_of_python(program: pathlib.Path) -> None:
    """Buffers lie where `arena.plan` puts them; what is fixed follows."""
    seed = 5
    rng = random.Random(seed)
    for _ in range(40):
        rows = []
        for number in range(rng.randrange(1, 12)):
            first = rng.randrange(8)
            count = rng.choice([0, rng.randrange(1, 5000), 640])
            rows.append(Lifetime(str(number), 4 * count, first, first + rng.randrange(4)))
        spans = " ".join(f"{row.nbytes // 4} 4 {row.first} {row.last}" for row in rows)
        (found,) = answers(program, f"plan {len(rows)} {spans}")
        wanted = plan(rows)
        offsets = [wanted.offsets[row.name] for row in rows]
        assert found == " ".join(map(str, [wanted.nbytes, *offsets, 512, 71])), (seed, rows)


def test_what_no_device_holds_is_refused(program: pathlib.Path) -> None:
    many, far, negative, wide, condition = answers(
        program, f"bytes {2**31} {2**31}", f"bytes {2**40} {2**40}", "bytes -1 4", f"int {2**31} 0", "need"
    )
    assert many.startswith("failed: A tensor of 4611686018427387904 elements is beyond")
    assert far == "failed: A tensor would have more than 2^63 elements."
    assert "-1 elements along an axis" in negative and "no size of 2147483648" in wide
    assert condition.startswith("failed: The model is not compiled for b = 5, n = 3.;  need:   b < n;")
    assert answers(program, "bytes 3 5", f"int {2**31 - 1} 0") == ["60", str(2**31 - 1)]
