/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Linked by configure --disable-helper in place of the other files of this
 * folder: no cache asks for predictions.
 */
#include "config.h"
#include "sys/predict/ahead.h"

const struct mrrc_predictor mrrc_ahead_predictor = { 0 };
