// SPDX-License-Identifier: Apache-2.0
// What a launch counts.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace uir::simt {

// Name in the code, name in the result. Accesses of a warp are counted once for all lanes that take part in one;
// the others are counted by lane, but for the instructions of a whole warp and of a block.
#define UIR_SIMT_COUNTERS(X)                     \
  X(kGlobalLoads, "global_loads")                \
  X(kGlobalStores, "global_stores")              \
  X(kGlobalLoadBytes, "global_load_bytes")       \
  X(kGlobalStoreBytes, "global_store_bytes")     \
  X(kGlobalWarpAccesses, "global_warp_accesses") \
  X(kGlobalSectors, "global_sectors")            \
  X(kGlobalSectorsIdeal, "global_sectors_ideal") \
  X(kGlobalUncoalesced, "global_uncoalesced")    \
  X(kSharedLoads, "shared_loads")                \
  X(kSharedStores, "shared_stores")              \
  X(kSharedLoadBytes, "shared_load_bytes")       \
  X(kSharedStoreBytes, "shared_store_bytes")     \
  X(kSharedWarpAccesses, "shared_warp_accesses") \
  X(kSharedPasses, "shared_passes")              \
  X(kBankConflicts, "bank_conflicts")            \
  X(kAtomics, "atomics")                         \
  X(kShuffles, "shuffles")                       \
  X(kVotes, "votes")                             \
  X(kSyncwarps, "syncwarps")                     \
  X(kSyncthreads, "syncthreads")                 \
  X(kNamedBarriers, "named_barriers")            \
  X(kGridSyncs, "grid_syncs")                    \
  X(kAsyncCopies, "async_copies")                \
  X(kBulkCopies, "bulk_copies")                  \
  X(kMmas, "mmas")                               \
  X(kMmaFlops, "mma_flops")                      \
  X(kLdmatrixes, "ldmatrixes")                   \
  X(kWgmmas, "wgmmas")                           \
  X(kWgmmaTileBytes, "wgmma_tile_bytes")         \
  X(kRacesUnchecked, "clocks_saturated")

enum Counter : size_t {
#define X(id, name) id,
  UIR_SIMT_COUNTERS(X)
#undef X
      kCounterCount
};

/*! \brief One number for each counter. */
struct Counters {
  std::array<int64_t, kCounterCount> of{};
  int64_t& operator[](Counter counter) { return of[counter]; }
};

/*! \brief Name of a counter in the result. */
inline const char* CounterName(size_t counter) {
  static const char* const names[] = {
#define X(id, name) name,
      UIR_SIMT_COUNTERS(X)
#undef X
  };
  return names[counter];
}

}  // namespace uir::simt
