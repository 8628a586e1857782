/*
 * network_code.c
 *	  Encodes inet and cidr values, preserving their order.
 *
 *		uint8		family: 2 or 3, that is, PGSQL_AF_INET or PGSQL_AF_INET6
 *		network		the address, 4 or 16 bytes, with zeros after the netmask
 *		uint8		bits of the netmask
 *		host		the bytes of the address again, from byte (bits / 8) to the end
 *
 * This is the order of network_cmp, which compares the family, then the address bits that both
 * netmasks cover, then the lengths of the netmasks, then all bits.  Let a's netmask be no longer
 * than b's.  If the addresses differ within a's netmask, the networks differ in the same bits, and
 * those bits decide.  Otherwise b's network equals a's, or has further bits that are not zero.  In
 * the latter case b's network is greater, and so is b, because its netmask is longer.  If the
 * networks are equal, the lengths decide.  If the lengths are equal too, the addresses can differ
 * only after the netmask.
 *
 * The family determines the length of the network, and the netmask the length of the host.  So no
 * code is the beginning of another code.
 */
#include "postgres.h"

#include <sys/socket.h>

#include "base/compat.h"
#include "key/network_code.h"
#include "utils/inet.h"

/* Append the code of a value.  Returns its end. */
uint8 *
lsm_network_encode(Datum value, uint8 *out)
{
	inet	   *address = (inet *) DatumGetPointer(value);
	int			size = ip_addrsize(address);
	int			bits = ip_bits(address);
	int			whole = bits / 8;

	*out++ = ip_family(address);
	memset(out, 0, size);
	memcpy(out, ip_addr(address), whole);
	if (bits % 8 != 0)
		out[whole] = ip_addr(address)[whole] & (0xFF << (8 - bits % 8));
	out += size;
	*out++ = bits;
	memcpy(out, ip_addr(address) + whole, size - whole);
	return out + size - whole;
}

/* Returns the length of the code at p, or 0 if the code is damaged.  `flip` inverts its bits. */
uint32
lsm_network_length(const uint8 *p, const uint8 *end, uint8 flip)
{
	uint8		family;
	uint32		size;
	uint32		bits;
	uint32		len;

	if (p >= end)
		return 0;
	family = *p ^ flip;
	if (family != PGSQL_AF_INET && family != PGSQL_AF_INET6)
		return 0;
	size = family == PGSQL_AF_INET ? 4 : 16;
	if (end - p < 1 + size + 1)
		return 0;
	bits = (uint8) (p[1 + size] ^ flip);
	if (bits > 8 * size)
		return 0;
	len = 1 + size + 1 + size - bits / 8;
	return len <= end - p ? len : 0;
}

/* Decode a code that lsm_network_length has accepted. */
Datum
lsm_network_decode(const uint8 *code, uint32 len)
{
	inet	   *address = palloc0(sizeof(inet));
	int			size;
	int			whole;

	ip_family(address) = code[0];
	size = ip_addrsize(address);
	ip_bits(address) = code[1 + size];
	whole = ip_bits(address) / 8;
	memcpy(ip_addr(address), code + 1, whole);
	memcpy(ip_addr(address) + whole, code + 1 + size + 1, size - whole);
	SET_INET_VARSIZE(address);
	return PointerGetDatum(address);
}
