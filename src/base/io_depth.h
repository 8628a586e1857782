/*
 * io_depth.h
 *	  Determines how many reads may be in flight.
 */
#ifndef LSM_IO_DEPTH_H
#define LSM_IO_DEPTH_H

extern int	lsm_reads_in_flight(Oid tablespace, bool maintenance);
extern int	lsm_scan_reads_in_flight(Oid tablespace);

#endif							/* LSM_IO_DEPTH_H */
