/* Fills System V segments and detaches them, so that they belong to no process, for ever. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/shm.h>

int main(void) {
  for (long megabytes = 0; megabytes < 4096; megabytes += 4) {
    int id = shmget(IPC_PRIVATE, 4 << 20, IPC_CREAT | 0600);
    if (id < 0) { printf("%ld\n", megabytes); return 3; }
    char *piece = shmat(id, NULL, 0);
    memset(piece, 1, 4 << 20);
    shmdt(piece);
  }
  puts("4096");
  return 0;
}
