# SPDX-License-Identifier: Apache-2.0
"""Operands that decide shapes or attributes: their numbers must be known before a kernel is made."""

from __future__ import annotations

#: Operator -> which of its inputs.
DECIDING: dict[str, tuple[int, ...]] = {
    "AffineGrid": (1,),
    "BlackmanWindow": (0,),
    "CenterCropPad": (1,),
    "Col2Im": (1, 2),
    "ConstantOfShape": (0,),
    "CumProd": (1,),
    "CumSum": (1,),
    "DFT": (1, 2),
    "Dropout": (2,),
    "Expand": (1,),
    "HammingWindow": (0,),
    "HannWindow": (0,),
    "If": (0,),
    "Loop": (0, 1),
    "MaxUnpool": (2,),
    "MelWeightMatrix": (0, 1, 2, 3, 4),
    "OneHot": (1, 2),
    "Pad": (1, 3),
    "Range": (0, 1, 2),
    "ReduceSum": (1,),
    **dict.fromkeys(
        """ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd
        ReduceSumSquare""".split(),
        (1,),
    ),
    "Reshape": (1,),
    "Resize": (1, 2, 3),
    "SequenceAt": (1,),
    "SequenceErase": (1,),
    "SequenceInsert": (2,),
    "Slice": (1, 2, 3, 4),
    "Split": (1,),
    "SplitToSequence": (1,),
    "Squeeze": (1,),
    "STFT": (1, 3),
    "Tile": (1,),
    "TopK": (1,),
    "Trilu": (1,),
    "Unsqueeze": (1,),
    "Upsample": (1,),
    **dict.fromkeys(("RNN", "GRU", "LSTM", "ReverseSequence"), ()),
}
#: A larger input never decides: a kernel for each of its values would be one for each call.
DECIDING_ELEMENTS = 1024
