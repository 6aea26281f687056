// SPDX-License-Identifier: Apache-2.0
#include "codegen/cuda/ops.h"

#include "codegen/op_row.h"
#include "codegen/uses.h"

namespace uir::codegen::cuda {

namespace {

/*! \brief Operand bits: the target, the n-th source. */
constexpr unsigned kTarget = 1, kFirst = 2, kSecond = 4, kThird = 8;

const OpRow kOps[] = {
    // op, planner, operands of one layout, operands in memory, wishes
    {"move", PlanMove, kTarget | kFirst, 0, nullptr},
    {"fill", PlanFill, 0, 0, nullptr},
    {"contract", PlanContract, 0, 0, ContractWishes},
    {"identity", PlanIdentity, 0, 0, nullptr},
    {"sync", PlanSync, 0, 0, nullptr},
    {"unary", PlanUnary, kTarget | kFirst, 0, nullptr},
    {"binary", PlanBinary, kTarget | kFirst | kSecond, 0, nullptr},
    {"compare", PlanCompare, kTarget | kFirst | kSecond, 0, nullptr},
    {"select", PlanSelect, kTarget | kFirst | kSecond | kThird, 0, nullptr},
    {"cast", PlanCast, kTarget | kFirst, 0, nullptr},
    {"iota", PlanIota, 0, 0, nullptr},
    {"reduce", PlanReduce, kTarget | kFirst, 0, nullptr},
    {"broadcast", PlanBroadcast, kTarget | kFirst, 0, nullptr},
    {"transpose", PlanTranspose, 0, 0, nullptr},
    {"gather", PlanGather, kTarget | kSecond, kFirst, nullptr},
    {"scatter", PlanScatter, kFirst | kSecond, kTarget, nullptr},
};

}  // namespace

const OpRow& OpRowOf(const IOp& iop) { return FindRow(kOps, iop, "CUDA", Describe(iop)); }

}  // namespace uir::codegen::cuda
