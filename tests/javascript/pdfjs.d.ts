// What the page uses of pdf.js, whose own types are not shipped.

export const GlobalWorkerOptions: { workerPort: Worker };
export function getDocument(source: object): { promise: Promise<any>; destroy(): Promise<void> };
export class PDFDataRangeTransport {
  constructor(length: number, initialData: Uint8Array);
  requestDataRange(begin: number, end: number): void;
  onDataRange(begin: number, chunk: Uint8Array): void;
}
