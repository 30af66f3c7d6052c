/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Registered memory for Kokkos: a memory space, host memory of fi_mr_alloc(3),
 * so that Views are preregistered. Header only, C++17, for Kokkos 3.4
 * (Debian 12's libtrilinos-kokkos-dev). Experimental: may change in any release.
 *
 *	fi_mrrc::KokkosSpace space(domain, FI_REMOTE_WRITE);
 *	Kokkos::View<double *, fi_mrrc::KokkosSpace> view(
 *		Kokkos::view_alloc("name", space), n);
 *	auto where = fi_mrrc::query(domain, view.data());
 *	fi_write(ep, view.data(), view.span() * sizeof(double), where.desc, ...);
 *
 * A View that is given no space takes the space of set_default(), or throws.
 * The domain has to outlive all Views; any thread may make and drop Views.
 * Kokkos keeps 128 bytes of its own in front of a View's data, in the same
 * memory: a peer that may write to the memory of the heap can also write to
 * these 128 bytes.
 */
#ifndef FI_MRRC_KOKKOS_HPP
#define FI_MRRC_KOKKOS_HPP

#include <cstdio>

#include <Kokkos_Core.hpp>

#if KOKKOS_VERSION < 30400 || KOKKOS_VERSION >= 40000
#error "fi_mrrc_kokkos.hpp is for Kokkos 3.4 and later 3.x"
#endif

#include <rdma/fi_mrrc.hpp>

namespace fi_mrrc
{
inline namespace v1
{

class KokkosSpace
{
      public:
	using memory_space = KokkosSpace;
	using size_type = std::size_t;
	using execution_space = Kokkos::HostSpace::execution_space;
	using device_type = Kokkos::Device<execution_space, memory_space>;

	/* As of set_default(). */
	KokkosSpace() : source_(default_source())
	{
	}
	explicit KokkosSpace(fid_domain *domain, uint64_t access = 0,
			     uint64_t flags = 0)
	    : source_(domain, access, flags)
	{
	}
	explicit KokkosSpace(fid_mrrc_mr_heap *heap, uint64_t flags = 0)
	    : source_(heap, flags)
	{
	}

	/* Before the first View that names no space; not by two threads. */
	static void set_default(const KokkosSpace &space)
	{
		default_source() = space.source_;
	}

	void *allocate(size_type bytes) const
	{
		return allocate("[unlabeled]", bytes);
	}
	void *allocate(const char *label, size_type bytes,
		       size_type logical = 0) const
	{
		void *buf;

		if (!source_)
			throw error("fi_mrrc::KokkosSpace without a domain: "
				    "set_default() was not called",
				    -FI_EINVAL);
		/* Kokkos promises that much of its spaces on hosts */
		buf = source_.allocate(bytes, Kokkos::Impl::MEMORY_ALIGNMENT);
		if (Kokkos::Profiling::profileLibraryLoaded())
			Kokkos::Profiling::allocateData(handle(), label, buf,
							logical ? logical :
								  bytes);
		return buf;
	}
	void deallocate(void *buf, size_type bytes) const
	{
		deallocate("[unlabeled]", buf, bytes);
	}
	void deallocate(const char *label, void *buf, size_type bytes,
			size_type logical = 0) const
	{
		if (!buf)
			return;
		if (Kokkos::Profiling::profileLibraryLoaded())
			Kokkos::Profiling::deallocateData(handle(), label, buf,
							  logical ? logical :
								    bytes);
		source_.deallocate(buf);
	}

	static constexpr const char *name()
	{
		return "Registered";
	}

      private:
	static detail::source &default_source()
	{
		static detail::source none;

		return none;
	}
	static Kokkos::Tools::SpaceHandle handle()
	{
		return Kokkos::Tools::make_space_handle(name());
	}

	detail::source source_;
};

} // namespace v1
} // namespace fi_mrrc

namespace Kokkos
{
namespace Impl
{

/* It is host memory; but host memory is not of it. */
template <> struct MemorySpaceAccess<HostSpace, fi_mrrc::KokkosSpace> {
	enum { assignable = true, accessible = true, deepcopy = true };
};
template <> struct MemorySpaceAccess<fi_mrrc::KokkosSpace, HostSpace> {
	enum { assignable = false, accessible = true, deepcopy = true };
};

template <>
class SharedAllocationRecord<fi_mrrc::KokkosSpace, void>
    : public SharedAllocationRecordCommon<fi_mrrc::KokkosSpace>
{
	using base = SharedAllocationRecordCommon<fi_mrrc::KokkosSpace>;
	using record = SharedAllocationRecord<void, void>;

	friend base;

	SharedAllocationRecord(const SharedAllocationRecord &) = delete;
	SharedAllocationRecord &
	operator=(const SharedAllocationRecord &) = delete;

#ifdef KOKKOS_ENABLE_DEBUG
	inline static record s_root_record;
#endif
	const fi_mrrc::KokkosSpace m_space;

      protected:
	~SharedAllocationRecord()
	{
		m_space.deallocate(get_label().c_str(), m_alloc_ptr,
				   m_alloc_size,
				   m_alloc_size -
					   sizeof(SharedAllocationHeader));
	}
	SharedAllocationRecord(
		const fi_mrrc::KokkosSpace &space, const std::string &label,
		std::size_t size,
		const record::function_type dealloc = &base::deallocate)
	    : base(
#ifdef KOKKOS_ENABLE_DEBUG
		      &s_root_record,
#endif
		      static_cast<SharedAllocationHeader *>(space.allocate(
			      label.c_str(),
			      size + sizeof(SharedAllocationHeader), size)),
		      size + sizeof(SharedAllocationHeader), dealloc),
	      m_space(space)
	{
		m_alloc_ptr->m_record = this;
		std::snprintf(m_alloc_ptr->m_label,
			      sizeof(m_alloc_ptr->m_label), "%s",
			      label.c_str());
	}
};

/* All of it is host memory to copies. */
template <class Exec>
struct DeepCopy<fi_mrrc::KokkosSpace, fi_mrrc::KokkosSpace, Exec>
    : DeepCopy<HostSpace, HostSpace, Exec> {
	using DeepCopy<HostSpace, HostSpace, Exec>::DeepCopy;
};
template <class Exec>
struct DeepCopy<HostSpace, fi_mrrc::KokkosSpace, Exec>
    : DeepCopy<HostSpace, HostSpace, Exec> {
	using DeepCopy<HostSpace, HostSpace, Exec>::DeepCopy;
};
template <class Exec>
struct DeepCopy<fi_mrrc::KokkosSpace, HostSpace, Exec>
    : DeepCopy<HostSpace, HostSpace, Exec> {
	using DeepCopy<HostSpace, HostSpace, Exec>::DeepCopy;
};

} // namespace Impl
} // namespace Kokkos

/* What Views instantiate of it, as for Kokkos' own spaces. */
#include <impl/Kokkos_SharedAlloc_timpl.hpp>

#endif // FI_MRRC_KOKKOS_HPP
