# SPDX-License-Identifier: Apache-2.0
# A Kokkos that Tessera was not built with.
set(Kokkos_VERSION 1.2.3)
set(Kokkos_DEVICES SERIAL)
