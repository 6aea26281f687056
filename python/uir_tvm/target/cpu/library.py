# SPDX-License-Identifier: Apache-2.0
"""What the CPU's library computes (`uir_tvm.library.cpu`)."""

from __future__ import annotations

from ...library.library_tables import AttentionLimits, ChainLimits, LibraryTable, TiledAttention
from .processors import PANELS_OF_64

#: What widens float16 in registers, and comes with what widens bfloat16: weights of products are read as they
#: are.
F16 = "f16c"
#: oneDNN multiplies bfloat16 with these instructions; without them, and float16 on CPUs without AVX512-FP16,
#: it widens elements one by one, which kernels of ours do faster while they multiply.
BF16 = "avx512bf16"

#: With these, products of float32 in pieces of 8 bits run at 2.7 times the rate of vectors' multiply-adds.
TILES = "amx-bf16"
#: With these attention is in tiles of packed keys, with all sums in registers; with vectors of 64 bytes only
#: on processors where that was measured.
PANELS, WIDER = "avx2", "avx512f"

#: Attention of which one kernel takes less time than products and a softmax.
ATTENTION = AttentionLimits(dtypes=frozenset({"float32", "float16", "bfloat16"}), max_head=256)

#: Images of more bytes are in no core's second cache when the next convolution reads them; vectors have 8 or
#: 16 channels. Of smaller ones a chain takes as long as its convolutions, or longer.
CHAINS = ChainLimits(
    PANELS,
    min_bytes=1 << 20,
    channels=16,
    activations=frozenset("none relu leaky_relu clip tanh sigmoid silu hard_sigmoid hard_swish".split()),
)

#: One kernel takes 0.5 to 1.0 of the time of two products and a softmax, and no memory for scores; with
#: larger heads a tile's queries leave the first-level cache.
TABLE = LibraryTable(
    functions={
        "matmul": "uir.library.cpu.matmul",
        "conv2d": "uir.library.cpu.conv2d",
        "conv2d_chain": "uir.library.cpu.conv2d_chain",
        "quantized_matmul": "uir.library.cpu.quantized_matmul",
        "integer_product": "uir.library.cpu.integer_product",
        "attention": "uir.library.cpu.attention",
        "recurrence": "uir.library.cpu.recurrence",
        "sorted": "uir.library.cpu.sort",
    },
    dtypes=frozenset({"float32"}),
    narrow={
        "attention": frozenset({"float16", "bfloat16"}),
        "sorted": frozenset({"bool", "float16", "bfloat16", "float64"})
        | {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
    },
    features={("matmul", "bfloat16"): BF16, ("conv2d", "bfloat16"): BF16},
    constants={("matmul", "float16"): F16, ("matmul", "bfloat16"): F16},
    widened={"conv2d": frozenset({"float16", "bfloat16"})},
    activations={
        "nn.relu": "relu",
        "nn.gelu": "gelu_erf",
        "nn.gelu_tanh": "gelu_tanh",
        "nn.silu": "silu",
        "tanh": "tanh",
        "sigmoid": "sigmoid",
        "leaky_relu": "leaky_relu",
        "clip": "clip",
        "hard_sigmoid": "hard_sigmoid",
        "hard_swish": "hard_swish",
    },
    epilogues=(("bias", "residual", "activation"), ("bias", "activation", "residual")),
    attention=ATTENTION,
    usual_attention=ATTENTION,
    tiled_attention=(
        TiledAttention(TILES, min_rows=384, min_keys=384),
        TiledAttention(PANELS, min_rows=192, min_keys=192, without=WIDER),
        TiledAttention(WIDER, min_rows=80, min_keys=80, processors=PANELS_OF_64),
    ),
    adjustable=True,
    channels_last=True,
    chains=CHAINS,
    rounds=True,
)
