# SPDX-License-Identifier: Apache-2.0
"""What a batch takes along: programs for machines that have Python 3.8 or later, and maybe nothing else.

They are copied into the folder of a batch as they are; nothing in them may import this package.

run               the command: checks files, hands candidates to a worker process, writes results.jsonl
results           the lines of results.jsonl
compare_elements  elements of tensors compared with what they should be
measuring         warm-up, samples and confirmation in turns, of any candidate
gpu               candidates that are cubins: NVIDIA's driver by ctypes
project           candidates that are projects of a vendor's toolkit
batch_jobs        candidates that are compiled where they run: uir_tvm must be there
"""
