// SPDX-License-Identifier: Apache-2.0
// A kernel of a core with asynchronous pipes, before and after its syncs are planned.
//
// A printer builds the tree of one kernel: plain lines, paragraphs, counted loops and instructions, each of
// which runs on one pipe and touches known bytes.  The planner (plan.h) gives the same tree back with Sync
// nodes where the device's vocabulary (vocabulary.h) needs them; the printer then writes it out.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "igraph/affine.h"

namespace uir::codegen::pipes {

//! \brief Bytes that an instruction touches.
//!
//! `bytes` consecutive bytes at every point `begin + sum(i_d * stride_d)`, i_d in [0, count_d).  A superset of what is
//! really touched is safe: it costs at most a sync.
struct Region {
  /*! \brief "ub", "l1", "l0a", ..., or the name of a dram pointer; different names never share bytes. */
  std::string memory;
  /*! \brief First byte within the memory, over pid and the variables of the loops around the instruction. */
  Affine begin = Affine::Constant(0);
  /*! \brief (count, stride in bytes), outermost first; strides may be 0 or negative. */
  std::vector<std::pair<int64_t, int64_t>> dims;
  /*! \brief Length of each run, in bytes. */
  int64_t bytes = 0;
  bool write = false;
  /*! \brief Only the run knows how far apart the runs are: they may be anywhere in the memory. */
  bool anywhere = false;
};

//! \brief What one pipe is given as a whole: a vendor call, or several of the same pipe that need no sync between.
//!
//! Its lines may hold `if` and `for` of their own; syncs stand outside of them, whatever they decide.
struct Instruction {
  /*! \brief A pipe of the vocabulary: "MTE2", "V", "MTE3", "S", "M", "MTE1", "FIX", ... */
  std::string pipe;
  std::vector<std::string> lines;
  std::vector<Region> regions;
  /*! \brief Short name in reports and in the comments of syncs, e.g. "load x" or "exp t1". */
  std::string comment;
  //! \brief The core issues nothing before it is done: it comes before whatever is issued later, on any pipe.  What the
  //! issuing pipe itself wrote before does not: that takes a flag.
  bool blocks = false;
  /*! \brief It waits for all that was issued before, on any pipe, and all that is issued later comes after it. */
  bool meets = false;
  /*! \brief Pipes of which all that was issued before is done when it starts; the core issues nothing before that. */
  std::set<std::string> awaits;
};

/*! \brief One printed synchronisation. */
struct Sync {
  enum class Kind {
    /*! \brief Flag `id` of the pair (from, to) goes up when all earlier instructions of `from` are done. */
    kSet,
    /*! \brief Later instructions of `to` wait until flag `id` is up, and take it down. */
    kWait,
    /*! \brief Later instructions of `from` wait until its earlier ones are done (`to` equals `from`); or, where `to` is
     * empty, everything issued later waits for `from`; or, where both are empty, for all pipes. */
    kBarrier,
  };
  Kind kind = Kind::kBarrier;
  std::string from;
  std::string to;
  /*! \brief Which flag of the pair; over the variables of the loops around, e.g. `2 + (k % 2)`. */
  Affine id = Affine::Constant(0);
  /*! \brief Number of the flag or barrier in the plan's report; the set and the waits of one flag have the same. */
  int number = 0;
  /*! \brief What it orders, e.g. "load x -> exp t1 (raw)". */
  std::string comment;
};

/*! \brief A node of the tree; `kind` says which members count. */
struct Node {
  enum class Kind { kPlain, kGroup, kLoop, kInstruction, kSync };
  Kind kind = Kind::kPlain;

  /*! \brief kPlain: lines without effect on memory (declarations, comments). */
  std::vector<std::string> lines;
  /*! \brief kGroup: heading of a paragraph (one iOp).  kLoop: the text before `{`, e.g. `for (int32_t k = 0; ...)`. */
  std::string text;
  /*! \brief kLoop: the variable in `begin`s, counting 0, 1, ..., extent - 1. */
  std::string var;
  /*! \brief kLoop: number of iterations, >= 0. */
  int64_t extent = 0;
  /*! \brief kLoop: there may be fewer iterations; the variable counts them, and can be read behind the loop. */
  bool fewer = false;
  //! \brief kLoop: there may be any number of iterations up to `extent`, none included.  The planner orders each apart
  //! from all else, with what is behind it and before it.
  bool ends = false;
  //! \brief kLoop of one iteration: it may be left out; with a loop around it, at that one's last iteration alone.
  bool optional = false;
  /*! \brief kGroup, kLoop: what is inside, in program order. */
  std::vector<Node> body;
  /*! \brief kInstruction; of a loop that ends, what its iterations are to those around it. */
  Instruction instruction;
  Sync sync;

  static Node Plain(std::vector<std::string> lines) {
    Node node;
    node.lines = std::move(lines);
    return node;
  }
  static Node Group(std::string text, std::vector<Node> body = {}) {
    Node node;
    node.kind = Kind::kGroup;
    node.text = std::move(text);
    node.body = std::move(body);
    return node;
  }
  static Node Loop(std::string var, std::string text, int64_t extent, std::vector<Node> body = {}) {
    Node node;
    node.kind = Kind::kLoop;
    node.var = std::move(var);
    node.text = std::move(text);
    node.extent = extent;
    node.body = std::move(body);
    return node;
  }
  static Node Of(Instruction instruction) {
    Node node;
    node.kind = Kind::kInstruction;
    node.instruction = std::move(instruction);
    return node;
  }
  static Node Of(Sync sync) {
    Node node;
    node.kind = Kind::kSync;
    node.sync = std::move(sync);
    return node;
  }
};

}  // namespace uir::codegen::pipes
