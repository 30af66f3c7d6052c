/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * libhook_mrrc-fi.so: where libfabric finds the hooking provider. All of the
 * code is in libmrrc-fi.so, in the same folder.
 */
#include "config.h"
#include "fi/hook/hook.h"

/* libfabric calls it, and declares it nowhere */
struct fi_provider *fi_prov_ini(void);

FI_EXT_INI
{
	return mrrc_hook_ini();
}
