/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Linked in place of the other files of this folder if configure was called
 * with --disable-helper: no cache asks for predictions.
 */
#include "config.h"
#include "sys/predict/ahead.h"

const struct mrrc_predictor mrrc_ahead_predictor = { 0 };
