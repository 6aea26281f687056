# SPDX-License-Identifier: Apache-2.0
"""ONNX -> Relax.

`model_file` reads and checks, `input_shapes` fixes the inputs. `simplifier` walks the graph once: it
evaluates constants and shapes to the end, expands what the standard defines by other operators
(`function_bodies`), folds branches and unrolls loops (`branches`, `recurrent`), and applies `rewrites`.
Where a value decides that only the run shows, `cuts` ends a stage, and `host_operators` run between
stages. What is left, `walk` converts by our `converters` or TVM's. `symbolic` reads a model once for all
sizes that it leaves open: `open_arrays` and `open_results` compute shapes of them.
"""

from .importer import from_onnx, run_onnx
from .model_file import load

__all__ = ["from_onnx", "load", "run_onnx"]
