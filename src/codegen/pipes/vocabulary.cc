// SPDX-License-Identifier: Apache-2.0
#include "codegen/pipes/vocabulary.h"

#include <map>

#include "codegen/error.h"

namespace uir::codegen::pipes {

namespace {

//! \brief Ascend 910B (dav-2201), vector and cube cores.
//!
//! Pairs: `enum class HardEvent` of SetFlag/WaitFlag(ISASI); ids there: 0 to 7, of which 6 and 7 are the vendor's own.
//! Barriers: PipeBarrier(ISASI), where PIPE_S is serial by itself and must not be given.
Vocabulary Ascend() {
  Vocabulary v;
  v.name = "ascend";
  v.pipes = {"S", "MTE2", "V", "MTE3", "MTE1", "M", "FIX"};
  v.flags = {{"MTE2", "MTE1"}, {"MTE1", "MTE2"}, {"MTE1", "M"},   {"M", "MTE1"},   {"MTE2", "V"},    {"V", "MTE2"},
             {"MTE3", "V"},    {"V", "MTE3"},    {"M", "V"},      {"V", "M"},      {"MTE3", "MTE1"}, {"MTE1", "MTE3"},
             {"MTE1", "V"},    {"MTE2", "M"},    {"M", "MTE2"},   {"V", "MTE1"},   {"M", "FIX"},     {"FIX", "M"},
             {"MTE3", "MTE2"}, {"MTE2", "MTE3"}, {"S", "V"},      {"V", "S"},      {"S", "MTE2"},    {"MTE2", "S"},
             {"S", "MTE3"},    {"MTE3", "S"},    {"MTE2", "FIX"}, {"FIX", "MTE2"}, {"FIX", "S"},     {"M", "S"},
             {"FIX", "MTE3"}};
  v.ids = 6;
  v.barriers = {"MTE2", "V", "MTE3", "MTE1", "M", "FIX"};
  v.drain_all = true;
  v.serial = {"S"};
  v.issuer = "S";
  return v;
}

//! \brief Cambricon MLU, one core.
//!
//! BANG C has no flags: the core waits for a pipe (`__sync_io`, `__sync_move`, `__sync_compute`) or for all (`__sync`).
//! Each pipe runs what it got one after the other.  S is scalar code of the core, which issues all else: what it reads
//! of vector functions' results it waits for (public kernels read the result of `__bang_argmax` without a sync).  MPU
//! is the memory core of the cluster, which copies between SRAM and GDRAM: an instruction that waits for all pipes
//! (`__sync_cluster`) orders it, nothing else.
Vocabulary Bang() {
  Vocabulary v;
  v.name = "bang";
  v.pipes = {"IO", "MOVE", "COMPUTE", "S", "MPU"};
  v.drains = {"IO", "MOVE", "COMPUTE"};
  v.drain_all = true;
  v.serial = {"IO", "MOVE", "COMPUTE", "S", "MPU"};
  v.coherent = {{"COMPUTE", "S"}};
  return v;
}

/*! \brief The same for cube cores, where a TPipe holds the ids 0 to 2 of M_MTE1 as long as it lives. */
Vocabulary AscendCube() {
  Vocabulary v = Ascend();
  v.name = "ascend cube";
  v.first = 3;
  v.ids -= v.first;
  return v;
}

}  // namespace

const Vocabulary& VocabularyOf(const std::string& name) {
  static const std::map<std::string, Vocabulary>* table =
      new std::map<std::string, Vocabulary>{{"ascend", Ascend()}, {"ascend cube", AscendCube()}, {"bang", Bang()}};
  auto found = table->find(name);
  if (found == table->end()) CodegenError("no device has the syncs named " + name, "planning syncs");
  return found->second;
}

}  // namespace uir::codegen::pipes
