// SPDX-License-Identifier: Apache-2.0
// Several kernels on each of many items, such as samples: each thread has whole items.
#pragma once

#include <algorithm>
#include <exception>
#include <mutex>
#include <string>

#include <tessera/base/for_each.hpp>
#include <tessera/base/region.hpp>
#include <tessera/base/thread_share.hpp>

namespace tessera {

/// Returns true if threads that share so many items of equal work, each whole, are rarely idle.
inline bool occupies_threads(Size items) {
  const Size threads = kernel_threads();
  return items % threads == 0 || items >= 4 * threads;
}

/// Calls f(items, share) for balanced shares of n items, at most `most`, on a thread each. All
/// kernels of a share run on its thread: what one stores, the next finds in the cache, and no
/// thread waits between them. `work` is the work of all in elements of a kernel; if threads would
/// not help, and on a device, there is one share. Rethrows what f throws.
template <class F>
void share_items([[maybe_unused]] const std::string& label, Size n, [[maybe_unused]] Size most,
                 [[maybe_unused]] Size work, const F& f) {
  if constexpr (on_host) {
    static const Size below = serial_below(), threads = kernel_threads();
    const Size shares = work < below ? 1 : std::min({n, most, threads});
    const auto run = [&](Size share) {
      const ThreadShare open;
      f(balanced_split(n, shares, share), share);
    };
    if (shares > 1 && !ThreadShare::is_open()) {
      std::exception_ptr failure;
      std::mutex mutex;
      Kokkos::parallel_for(label, range_policy(ExecSpace(), shares), [&](Size share) {
        try {
          run(share);
        } catch (...) {
          const std::lock_guard lock(mutex);
          failure = std::current_exception();
        }
      });
      if (failure) std::rethrow_exception(failure);
      return;
    }
    if ((threads == 1 || work < below) && !ThreadShare::is_open()) {
      const Region region(label.c_str());
      return run(0);
    }
  }
  f(Range{0, n}, Size{0});
}

}  // namespace tessera
