# SPDX-License-Identifier: Apache-2.0
"""Host models of devices: they execute emitted text on a machine without the device, and check it."""
