// SPDX-License-Identifier: Apache-2.0
// Where everything lies in the memory of a core: the graph's reg pointers, and work buffers beside them.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "codegen/uses.h"

namespace uir::codegen::tiles {

/*! \brief The memory that reg pointers lie in. */
struct CoreMemory {
  /*! \brief In messages: "unified buffer". */
  const char* name;
  /*! \brief In messages: "vector core". */
  const char* core;
  /*! \brief Tensors start at multiples of this, in bytes. */
  int64_t block;
  /*! \brief Bytes of an element; refuses a dtype that a core cannot hold (`where`: for the error). */
  int64_t (*bytes_of)(const std::string& dtype, const std::string& where);
  /*! \brief Whether the cores of a group share an sram. */
  bool shares = false;
};

/*! \brief A tensor in a memory: a pointer, or the work buffer of an iOp. */
struct Place {
  std::string name;
  std::string dtype;
  /*! \brief Bytes from the start of the memory, a multiple of its block. */
  int64_t begin = 0;
  int64_t bytes = 0;
  /*! \brief Program positions (`Use::position`) from the first to the last at which it holds something. */
  int first = 0;
  int last = 0;
};

/*! \brief The plan of a graph; work buffers are added while it is printed. */
class Plan {
 public:
  //! \brief Takes the addresses that the pass `allocate` gave.
  //! \note CodegenError for a graph without addresses, with sram that the cores do not share, or with more than the
  //! hardware's `reg_bytes` or `sram_bytes`.
  Plan(const IGraph& graph, const CoreMemory& memory);

  const IGraph& graph() const { return graph_; }
  const std::vector<Use>& uses() const { return uses_; }
  /*! \brief Places of the reg pointers in use, by name. */
  const std::map<std::string, Place>& places() const { return places_; }
  /*! \brief Places of the sram pointers in use, by name. */
  const std::map<std::string, Place>& shared() const { return shared_; }
  /*! \brief The place of a reg or sram pointer. */
  const Place& PlaceOf(const std::string& pointer) const;

  //! \brief Room for a work buffer at one position: behind all pointers if there is room, else where no pointer is
  //! alive at that position.  Buffers of one position are apart; those of different positions may share bytes.
  //! \return Byte in the memory.
  int64_t Reserve(int position, int64_t bytes, const std::string& where);
  //! \brief Room behind all pointers that holds the same from the first position to the last: nothing else gets it.
  //! \note Before any `Reserve`.  CodegenError where there is no room.
  int64_t Keep(int64_t bytes, const std::string& where);
  /*! \brief How many work buffers a position has. */
  size_t Reserved(int position) const;
  /*! \brief Leaves a position its first work buffers: later ones may share the bytes of the others. */
  void Release(int position, size_t kept);
  /*! \brief The bytes that pointers and work buffers reach up to. */
  int64_t total() const { return total_; }
  /*! \brief The bytes that sram pointers reach up to. */
  int64_t shared_total() const { return shared_total_; }
  const CoreMemory& memory() const { return memory_; }
  /*! \brief What must not be larger: `reg_bytes` of the hardware. */
  int64_t limit() const { return limit_; }

  /*! \brief The most bytes that `Reserve` could give at a position. */
  int64_t FreeAt(int position) const;

  /*! \brief What is printed at a position belongs to all positions from `first` on: work buffers spare what these use.
   */
  void Cover(int position, int first) { covered_[position] = first; }

  /*! \brief Whether what lies outside of a target's valid box holds values that someone reads later. */
  bool SparesOutside(const ISlice& target) const;
  //! \brief Whether nobody's values lie between the end of any row of a reg slice and the end of the row's last
  //! block, proved: then a copy by blocks may spoil it.
  bool RowEndsAreFree(const ISlice& slice) const;

 private:
  void Take(const IPointer& pointer, const ffi::Map<ffi::String, ffi::Any>& addresses);
  /*! \brief [begin, end) of work buffers, and of pointers that are alive, at a position, sorted. */
  std::vector<std::pair<int64_t, int64_t>> TakenAt(int position, bool pointers) const;
  /*! \brief Whether a pointer is alive at a position, or at one that it covers. */
  bool AliveAt(const Place& place, int position) const;
  void FindLives();
  void FindSpared();
  void FindAhead();

  IGraph graph_;
  CoreMemory memory_;
  std::vector<Use> uses_;
  std::map<std::string, Place> places_, shared_;
  std::map<std::string, bool> spares_;
  /*! \brief Targets of loads that run ahead into a place of their own, where nothing is that is still read. */
  std::set<const ffi::Object*> ahead_;
  /*! \brief What `Keep` gave. */
  std::vector<std::pair<int64_t, int64_t>> kept_;
  /*! \brief Work buffers of a position. */
  std::map<int, std::vector<Place>> work_;
  /*! \brief Positions that are printed with others before them -> the first of these. */
  std::map<int, int> covered_;
  int64_t peak_ = 0;
  int64_t total_ = 0;
  int64_t shared_total_ = 0;
  int64_t limit_ = 0;
};

}  // namespace uir::codegen::tiles
