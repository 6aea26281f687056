// SPDX-License-Identifier: Apache-2.0
// The planner's view of a kernel: bodies, loops, instructions, and a shortened run of them.
//
// Long loops are shortened; what follows says why nothing is lost.
//
// Instructions are ordered by the issue order: whatever orders two instances is a chain of pipe order, flags and
// barriers, each step of which goes forward in issue order.  So what orders instance i before instance j lies between
// them, and within one loop it depends on the number of iterations between them only, not on which they are.
//
// Which bytes an instruction touches has a period in each loop: after `period` iterations (the least common multiple
// of what the divisors of `%` and `/` give) its address has moved by a constant.  Where this is zero, what i
// conflicts with j at some distance, it does at a distance of at most `period`; where it is the same for both and not
// zero, conflicts have a distance of their own (conflicts.h looks for those beyond the shortened run, and what moves
// differently is taken as everything that it reaches).  An instance must wait for the latest conflicting one of each
// pipe only, since a pipe starts what it gets in order.  So a loop of n >= 2 * period + 2 iterations shows every
// such pair that the real one has: those within the loop (any residue, any distance up to the period), those with
// instances before it (its first iterations) and those behind it (its last ones, whose residues are kept because n
// is congruent to the extent).
//
// A chain that runs through a whole loop holds for any longer one: somewhere in the loop it is on a pipe, not in a
// flag, unless one flag spans the loop, and flags span at most `period` + 1 iterations; there the additional
// iterations can be put in.  So no race in the shortened run means none in the real one.  In the other direction a
// longer loop could hold a longer chain, of at most one flag per pipe; the run is so long that these fit unless the
// kernel is very large, and then at worst a sync is kept that another chain would have made needless.
#pragma once

#include <string>
#include <vector>

#include "codegen/pipes/strided.h"
#include "codegen/pipes/tree.h"
#include "codegen/pipes/vocabulary.h"
#include "igraph/numbered.h"

namespace uir::codegen::pipes {

/*! \brief A Region with its address compiled. */
struct Bytes {
  std::string memory;
  NumberedAffine begin;
  std::vector<Dim> dims;
  int64_t bytes = 0;
  bool write = false;
  /*! \brief Its address has no period that is short enough: it counts as the whole memory. */
  bool whole = false;
};

struct Op {
  const Instruction* instruction = nullptr;
  int pipe = 0;
  /*! \brief Loops around it, outermost first. */
  std::vector<int> loops;
  int body = 0;
  /*! \brief Its place among the items of its body. */
  int position = 0;
  std::vector<Bytes> regions;
};

/*! \brief An instruction or a loop in a body. */
struct Item {
  bool is_loop = false;
  int index = 0;
};

/*! \brief The root (body 0) or the body of loop l (body l + 1); paragraphs are taken as what they hold. */
struct Body {
  std::vector<Item> items;
};

struct LoopOf {
  std::string var;
  int64_t extent = 0;
  /*! \brief The loop around it; -1 for none. */
  int parent = -1;
  int position = 0;
  int64_t period = 1;
  /*! \brief An address has no short period in it, and it is short enough to be run whole. */
  bool whole = false;
  /*! \brief There may be fewer iterations. */
  bool fewer = false;
  /*! \brief It may be left out. */
  bool optional = false;
};

/*! \brief A name in addresses that no loop binds: pid, a symbol. */
struct Free {
  std::string name;
  int64_t period = 1;
};

class Program {
 public:
  Program(const std::vector<Node>& nodes, const Vocabulary& vocabulary, const std::string& where);

  std::vector<std::string> pipes;
  std::vector<Body> bodies;
  std::vector<LoopOf> loops;
  std::vector<Op> ops;
  /*! \brief Variables are numbered: loops first, then these. */
  std::vector<Free> frees;

  /*! \brief Number of a pipe; throws CodegenError for one that the vocabulary lacks. */
  int PipeOf(const std::string& name) const;
  /*! \brief Loops around a body, outermost first. */
  std::vector<int> Around(int body) const;
  /*! \brief The position in `body` of the item that holds the op; the op must be inside. */
  int PositionIn(int body, const Op& op) const;
  /*! \brief Whether an item has an instruction on a pipe, at any depth. */
  bool Uses(const Item& item, int pipe) const;
  /*! \brief Extents of the shortened loops with `slack` iterations more than 2 * period + 2. */
  std::vector<int64_t> Shortened(int64_t slack) const;
  /*! \brief Instances in a run with these extents. */
  int64_t Instances(const std::vector<int64_t>& extents) const;

 private:
  void Collect(const std::vector<Node>& nodes, int body, std::vector<int>* around);
  /*! \brief One more item of a body. */
  void AddOp(const Instruction& instruction, int body, const std::vector<int>& around);
  void Compile();

  std::string where_;
};

}  // namespace uir::codegen::pipes
