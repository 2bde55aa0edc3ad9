// One JSON WebSocket that comes back by itself. Requests get their answers; everything else is an event.
import { ApiError, openSocket } from "./api";

export type Event = { event: string } & Record<string, unknown>;

export class Channel {
  onOpen: () => void = () => undefined;
  onLost: (refused: boolean) => void = () => undefined;
  onEvent: (event: Event) => void = () => undefined;
  private socket: WebSocket | null = null;
  private next = 1;
  private waiting = new Map<number, { resolve: (value: unknown) => void; reject: (problem: Error) => void }>();
  private pause = 250;
  private closed = false;

  constructor(private readonly path: string) {}

  open(): void {
    openSocket(this.path).then(
      (socket) => (this.closed ? socket.close() : this.use(socket)),
      (problem: unknown) => {
        const refused = problem instanceof ApiError && (problem.status === 401 || problem.status === 403);
        if (refused) this.pause = 4000;
        this.onLost(refused);
        this.comeBack();
      },
    );
  }

  private use(socket: WebSocket): void {
    this.socket = socket;
    socket.onmessage = (message) => {
      const said = JSON.parse(String(message.data)) as Record<string, unknown>;
      if (said.connected === true) {
        this.pause = 250;
        this.onOpen();
      } else if (typeof said.event === "string") {
        this.onEvent(said as Event);
      } else if (typeof said.id === "number") {
        const waiter = this.waiting.get(said.id);
        this.waiting.delete(said.id);
        const error = said.error as { message: string } | undefined;
        if (error) waiter?.reject(new Error(error.message));
        else waiter?.resolve(said.result);
      }
    };
    socket.onclose = () => {
      for (const waiter of this.waiting.values()) waiter.reject(new Error("the connection was lost"));
      this.waiting.clear();
      if (this.closed) return;
      this.onLost(false);
      this.comeBack();
    };
  }

  private comeBack(): void {
    setTimeout(() => {
      if (!this.closed) this.open();
    }, this.pause);
    this.pause = Math.min(this.pause * 1.6, 5000);
  }

  request<T>(method: string, params: Record<string, unknown>, session?: string): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      if (this.socket?.readyState !== WebSocket.OPEN) {
        reject(new Error("not connected"));
        return;
      }
      const id = this.next++;
      this.waiting.set(id, { resolve: resolve as (value: unknown) => void, reject });
      this.socket.send(JSON.stringify({ id, method, params, ...(session === undefined ? {} : { session }) }));
    });
  }

  close(): void {
    this.closed = true;
    this.socket?.close();
  }
}
