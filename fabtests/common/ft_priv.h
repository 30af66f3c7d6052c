/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Drops privileges, for tests of the provider without them. */
#ifndef FT_PRIV_H
#define FT_PRIV_H

/* Drops every capability. */
void ft_drop_caps(void);
/*
 * Makes userfaultfd(2), and /dev/userfaultfd if that exists, return EPERM from
 * now on, as in many containers.
 */
void ft_deny_uffd(void);
/* Makes io_uring_setup(2), too, return EPERM. */
void ft_deny_uring(void);

#endif /* FT_PRIV_H */
