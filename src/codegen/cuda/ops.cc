// SPDX-License-Identifier: Apache-2.0
// The table of the classes of iOps that the CUDA printer knows.
#include "codegen/cuda/ops.h"

#include "codegen/cuda/contract.h"
#include "codegen/op_row.h"

namespace uir::codegen::cuda {

namespace {

/*! \brief Operand bits: the target, the n-th source. */
constexpr unsigned kTarget = 1, kFirst = 2, kSecond = 4, kThird = 8;

const OpRow kOps[] = {
    // op, emitter, operands of one layout, operands in memory, wishes
    {"move", EmitMove, kTarget | kFirst, 0, nullptr},
    {"fill", EmitFill, 0, 0, nullptr},
    {"contract", EmitContract, 0, 0, ContractWishes},
    {"identity", EmitIdentity, 0, 0, nullptr},
    {"sync", EmitSync, 0, 0, nullptr},
    {"unary", EmitUnary, kTarget | kFirst, 0, nullptr},
    {"binary", EmitBinary, kTarget | kFirst | kSecond, 0, nullptr},
    {"compare", EmitCompare, kTarget | kFirst | kSecond, 0, nullptr},
    {"select", EmitSelect, kTarget | kFirst | kSecond | kThird, 0, nullptr},
    {"cast", EmitCast, kTarget | kFirst, 0, nullptr},
    {"iota", EmitIota, 0, 0, nullptr},
    {"reduce", EmitReduce, kTarget | kFirst, 0, nullptr},
    {"broadcast", EmitBroadcast, kTarget | kFirst, 0, nullptr},
    {"transpose", EmitTranspose, 0, 0, nullptr},
    {"gather", EmitGather, kTarget | kSecond, kFirst, nullptr},
    {"scatter", EmitScatter, kFirst | kSecond, kTarget, nullptr},
};

}  // namespace

const OpRow& OpRowOf(const IOp& iop) { return FindRow(kOps, iop, "CUDA", Describe(iop)); }

}  // namespace uir::codegen::cuda
